import { dirname, relative } from 'node:path';
import type { Device, NodeCounts, PipelineComponent } from '@darkroom/core';
import type { Upscale } from '@darkroom/kinds';
import { type LoadedSession, loadOnnxSession, type LoadOnnxSessionOptions, type OnnxSession } from '@darkroom/runtime';
import { type LoadedGraph, loadGraph, type LoadGraphOptions } from './load-graph.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { DroppableSession } from './droppable-session.ts';
import { giveMoments } from '../onnx/give-moments.ts';
import { loadSafetyChecker, type SafetyChecker } from '../safety/safety-checker.ts';
import { loadUpscaler, type Upscaler } from '../upscale/upscaler.ts';
import { VaeDecoder } from '../vae/vae-decoder.ts';
import { VaeEncoder } from '../vae/vae-encoder.ts';

/** Where and how a pipeline's graphs run. */
export interface LoadPipelineOptions {
  /** In the order of preference; `cpu` if absent. */
  devices?: readonly Device[];
  /** Only the first of them will do. */
  isStrictAboutDevice?: boolean;
  threads?: number;
  /** Encoders of texts and pictures are in memory only while there is something to encode. */
  hasLowMemory?: boolean;
  /** Pictures of more pixels than a square of this side are decoded in pieces; none are if absent. */
  vaeTileSize?: number;
}

interface Entry extends LoadedGraph {
  /** The same session, of an encoder of texts or pictures. */
  readonly droppable?: DroppableSession;
  /** Asked for once, while the graph is in memory. */
  nodes?: NodeCounts | undefined;
}

/**
 * The graphs of a model, loaded as its options say. Every pipeline loads through this: which device each runs on, and that
 * text encoders come and go where memory is low, is no business of theirs.
 */
export class ModelGraphs {
  readonly #model: ModelDirectory;
  readonly #hasLowMemory: boolean;
  readonly #vaeTileSize: number;
  readonly #sessionOptions: Omit<LoadOnnxSessionOptions, 'file'>;
  readonly #entries: Entry[] = [];
  #vaeDecoder: VaeDecoder | undefined;

  constructor(model: ModelDirectory, options: LoadPipelineOptions) {
    const { devices, isStrictAboutDevice, threads, hasLowMemory = false, vaeTileSize = Infinity } = options;
    this.#model = model;
    this.#hasLowMemory = hasLowMemory;
    this.#vaeTileSize = vaeTileSize;
    this.#sessionOptions = {
      ...(devices === undefined ? {} : { devices }),
      ...(isStrictAboutDevice === undefined ? {} : { isStrict: isStrictAboutDevice }),
      ...(threads === undefined ? {} : { threads }),
    };
  }

  /**
   * Loads a text encoder, whose session comes back by itself after it was let go of by `settle`.
   *
   * @param at its number, in the order of the pipeline's class.
   * @throws DarkroomError as `loadGraph` does, as do the next two.
   */
  async loadTextEncoder(at: number): Promise<LoadedGraph> {
    return this.#loadDroppable(this.#model.graphs.textEncoders[at]!);
  }

  async loadDenoiser(): Promise<LoadedGraph> {
    return this.#add(await this.#load(this.#model.graphs.denoiser));
  }

  /** The denoiser that takes adapters: with weights of its own, so only where one is asked for. */
  async loadDenoiserWithLoras(): Promise<LoadedGraph> {
    return this.#add(await this.#load(this.#model.loras.graph!));
  }

  async loadVaeDecoder(): Promise<VaeDecoder> {
    const { graphs, latents } = this.#model;
    const { file, session } = this.#add(await this.#load(graphs.vaeDecoder));
    const options = { ...this.#sessionOptions, devices: [session.device] };
    this.#vaeDecoder = new VaeDecoder({
      file,
      path: graphs.vaeDecoder,
      session,
      loadPart: (part) => loadOnnxSession({ file: part, ...options }),
      factor: latents.factor,
      wholePixels: this.#vaeTileSize ** 2,
    });
    return this.#vaeDecoder;
  }

  /**
   * Loads the encoder of pictures, tries it, and lets go of it until the first picture comes: most models only draw.
   *
   * @param side pixels of the picture that it is tried with.
   * @returns undefined if the model has none.
   */
  async loadVaeEncoder(side: number): Promise<VaeEncoder | undefined> {
    const { graphs, latents } = this.#model;
    if (graphs.vaeEncoder === undefined) return undefined;
    const entry = await this.#loadDroppable(graphs.vaeEncoder, { rewrite: giveMoments });
    const encoder = new VaeEncoder({ ...entry, latents });
    await encoder.try(side);
    await this.#letGo(entry);
    return encoder;
  }

  /** undefined where the model has none, or is not to use it. */
  async loadSafetyChecker(): Promise<SafetyChecker | undefined> {
    const { graphs, clipImage, card } = this.#model;
    if (graphs.safetyChecker === undefined || clipImage === undefined) return undefined;
    const graph = this.#add(await this.#load(graphs.safetyChecker));
    return loadSafetyChecker(graph, { settings: clipImage, refuses: card.safetyChecker === 'refuse' });
  }

  /** By what they make of a side. */
  async loadUpscalers(): Promise<ReadonlyMap<Upscale, Upscaler>> {
    const { graphs, card } = this.#model;
    const upscalers = new Map<Upscale, Upscaler>();
    for (const [at, upscale] of (card.upscales ?? []).entries()) {
      const graph = this.#add(await this.#load(graphs.upscalers![at]!));
      upscalers.set(upscale, await loadUpscaler(graph, upscale));
    }
    return upscalers;
  }

  /** Lets go of the encoders if memory is low. */
  async settle(): Promise<void> {
    if (!this.#hasLowMemory) return;
    for (const entry of this.#entries) await this.#letGo(entry);
  }

  async #letGo(entry: Entry): Promise<void> {
    if (entry.droppable?.isLoaded !== true) return;
    await this.#countNodes(entry);
    await entry.droppable.dispose();
  }

  /** What each graph runs on. To be asked once all of them have been called, because only then their nodes are known. */
  async describe(): Promise<PipelineComponent[]> {
    const components: PipelineComponent[] = [];
    for (const entry of this.#entries) {
      const { file, session } = entry;
      const { device, refusals } = session;
      const nodes = await this.#countNodes(entry);
      const remark = this.#remarkOn(file);
      components.push({
        part: dirname(file),
        device,
        refusals,
        ...(nodes === undefined ? {} : { nodes }),
        ...(remark === undefined ? {} : { remark }),
      });
    }
    return components;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#entries.map(({ session }) => session.dispose()));
  }

  #remarkOn(file: string): string | undefined {
    if (file === this.#vaeDecoder?.options.file) return this.#vaeDecoder.remark;
    const { path, graphs, loras } = this.#model;
    const isOfLoras = file === relative(path, graphs.denoiser) && loras.problems.length > 0;
    return isOfLoras ? `left out: ${loras.problems.join('; ')}` : undefined;
  }

  #load(path: string, options: LoadGraphOptions = {}): Promise<LoadedGraph<LoadedSession>> {
    return loadGraph(this.#model, path, { ...this.#sessionOptions, countsNodes: true, ...options });
  }

  async #loadDroppable(path: string, options: LoadGraphOptions = {}): Promise<Entry> {
    const loaded = await this.#load(path, options);
    const again = { ...this.#sessionOptions, ...options, devices: [loaded.session.device] };
    const reload = async (): Promise<OnnxSession> => (await loadGraph(this.#model, path, again)).session;
    const session = new DroppableSession(loaded.session, reload);
    return this.#add({ file: loaded.file, session, droppable: session });
  }

  #add<Added extends Entry>(entry: Added): Added {
    this.#entries.push(entry);
    return entry;
  }

  async #countNodes(entry: Entry): Promise<NodeCounts | undefined> {
    // A session on the CPU has nothing to count, and one that was let go of has been asked.
    if (!('nodes' in entry))
      entry.nodes = entry.session.device === 'cpu' ? undefined : await entry.session.countNodes();
    return entry.nodes;
  }
}

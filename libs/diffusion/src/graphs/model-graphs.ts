import { itemAt, pairUp } from '@darkroom/core';
import { dirname, relative } from 'node:path';
import type { Device, NodeCounts, PipelineComponent } from '@darkroom/core';
import type { Upscale } from '@darkroom/kinds';
import { type LoadedSession, loadOnnxSession, type LoadOnnxSessionOptions, type OnnxSession } from '@darkroom/runtime';
import { type LoadedGraph, loadGraph, type LoadGraphOptions } from '../onnx/load-graph.ts';
import type { ModelDirectory } from '../model/model-directory.ts';
import { ReloadableSession } from './reloadable-session.ts';
import { outputMoments } from '../onnx/output-moments.ts';
import { loadSafetyChecker, type SafetyChecker } from '../safety/safety-checker.ts';
import { loadUpscaler, type Upscaler } from '../upscale/upscaler.ts';
import { VaeDecoder } from '../vae/vae-decoder.ts';
import { VaeEncoder } from '../vae/vae-encoder.ts';

/** Devices and memory settings for a pipeline's graphs. */
export interface LoadPipelineOptions {
  /** In order of preference; `cpu` if absent. */
  devices?: readonly Device[];
  threads?: number;
  /** Loads text encoders and the VAE encoder only while they encode something. */
  hasLowMemory?: boolean;
  /** Images with more pixels than a square of this side are decoded in tiles; 1024 if absent. */
  vaeTileSize?: number;
}

/** Images of SDXL and later models have this side. Tiles take less memory and more time. */
const defaultTileSize = 1024;

interface Entry extends LoadedGraph {
  /** The same session, if it belongs to a text encoder or the VAE encoder. */
  readonly droppable?: ReloadableSession;
  /** Counted once, while the graph is loaded. */
  nodes?: NodeCounts;
}

/**
 * Loads the graphs of a model. Every pipeline loads through this class, so that pipelines need not know the devices, or
 * that encoders are unloaded between calls when memory is low.
 */
export class ModelGraphs {
  readonly #model: ModelDirectory;
  readonly #hasLowMemory: boolean;
  readonly #vaeTileSize: number;
  readonly #sessionOptions: Omit<LoadOnnxSessionOptions, 'file'>;
  readonly #entries: Entry[] = [];
  #vaeDecoder: VaeDecoder | undefined;

  constructor(model: ModelDirectory, options: LoadPipelineOptions) {
    const { devices, threads, hasLowMemory = false, vaeTileSize = defaultTileSize } = options;
    this.#model = model;
    this.#hasLowMemory = hasLowMemory;
    this.#vaeTileSize = vaeTileSize;
    this.#sessionOptions = { devices, threads };
  }

  /**
   * Loads a text encoder. After `unloadEncoders`, the next call loads it again.
   *
   * @param at index of the encoder, in the order of the pipeline's class.
   * @throws DarkroomError as `loadGraph` does; so do the next two methods.
   */
  async loadTextEncoder(at: number): Promise<LoadedGraph> {
    return this.#loadDroppable(itemAt(this.#model.graphs.textEncoders, at));
  }

  async loadDenoiser(): Promise<LoadedGraph> {
    return this.#add(await this.#load(this.#model.graphs.denoiser));
  }

  /**
   * Loads the denoiser that takes adapters. It has a second copy of the weights, so load it only when a request needs
   * it.
   */
  async loadDenoiserWithLoras(path: string): Promise<LoadedGraph> {
    return this.#add(await this.#load(path));
  }

  /** Loads a text encoder that takes adapters; otherwise as `loadDenoiserWithLoras`. */
  async loadTextEncoderWithLoras(path: string): Promise<LoadedGraph> {
    return this.#loadDroppable(path);
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
      maxUntiledPixels: this.#vaeTileSize ** 2,
    });
    return this.#vaeDecoder;
  }

  /**
   * Loads the VAE encoder, tries it, and unloads it until a request needs it: most requests have no input image.
   *
   * @param side pixels of the image that it is tried with.
   * @returns undefined if the model has none.
   */
  async loadVaeEncoder(side: number): Promise<VaeEncoder | undefined> {
    const { graphs, latents } = this.#model;
    if (graphs.vaeEncoder === undefined) return undefined;
    const entry = await this.#loadDroppable(graphs.vaeEncoder, { rewrite: outputMoments });
    const encoder = new VaeEncoder({ ...entry, latents });
    await encoder.try(side);
    await this.#unload(entry);
    return encoder;
  }

  /** Returns undefined if the model has no safety checker, or it is switched off. */
  async loadSafetyChecker(): Promise<SafetyChecker | undefined> {
    const { graphs, clipImage, card } = this.#model;
    if (graphs.safetyChecker === undefined || clipImage === undefined) return undefined;
    const graph = this.#add(await this.#load(graphs.safetyChecker));
    return loadSafetyChecker(graph, { settings: clipImage, refuses: card.safetyChecker === 'refuse' });
  }

  /** Returns the upscalers by their factor. */
  async loadUpscalers(): Promise<ReadonlyMap<Upscale, Upscaler>> {
    const { graphs, card } = this.#model;
    const upscalers = new Map<Upscale, Upscaler>();
    for (const [upscale, file] of pairUp(card.upscales ?? [], graphs.upscalers ?? [])) {
      const graph = this.#add(await this.#load(file));
      upscalers.set(upscale, await loadUpscaler(graph, upscale));
    }
    return upscalers;
  }

  /** Unloads the encoders if memory is low. */
  async unloadEncoders(): Promise<void> {
    if (!this.#hasLowMemory) return;
    for (const entry of this.#entries) await this.#unload(entry);
  }

  async #unload(entry: Entry): Promise<void> {
    if (entry.droppable?.isLoaded !== true) return;
    await this.#countNodes(entry);
    await entry.droppable.dispose();
  }

  /** Returns the devices of each graph. Call it after every graph has run once: only then are its nodes known. */
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
    const hasRefusedLoras = file === relative(path, graphs.denoiser) && loras.refused.length > 0;
    return hasRefusedLoras
      ? `left out: ${loras.refused.map(({ file: other, reason }) => `${other}: ${reason}`).join('; ')}`
      : undefined;
  }

  #load(path: string, options: LoadGraphOptions = {}): Promise<LoadedGraph<LoadedSession>> {
    return loadGraph(this.#model, path, { ...this.#sessionOptions, countsNodes: true, ...options });
  }

  async #loadDroppable(path: string, options: LoadGraphOptions = {}): Promise<Entry> {
    const loaded = await this.#load(path, options);
    const reloadOptions = { ...this.#sessionOptions, ...options, devices: [loaded.session.device] };
    const reload = async (): Promise<OnnxSession> => (await loadGraph(this.#model, path, reloadOptions)).session;
    const session = new ReloadableSession(loaded.session, reload);
    return this.#add({ file: loaded.file, session, droppable: session });
  }

  #add<Added extends Entry>(entry: Added): Added {
    this.#entries.push(entry);
    return entry;
  }

  async #countNodes(entry: Entry): Promise<NodeCounts | undefined> {
    // Sessions on the CPU have nothing to count; unloaded sessions were counted before they were unloaded.
    if (!('nodes' in entry))
      entry.nodes = entry.session.device === 'cpu' ? undefined : await entry.session.countNodes();
    return entry.nodes;
  }
}

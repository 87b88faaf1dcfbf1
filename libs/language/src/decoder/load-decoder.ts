import type { Device, PipelineComponent } from '@darkroom/core';
import { loadSplitSession, type OnnxSession, type SplitSession, type TensorSpec } from '@darkroom/runtime';
import { DarkroomError } from '@darkroom/core';
import { join } from 'node:path';
import type { TextModelDirectory } from '../model/text-model-directory.ts';
import { modelFileError } from '../model/model-file.ts';
import { type Decoder, lastOf } from './decoder.ts';
import { keptLogits, keptLogitsInputs } from './kept-logits.ts';
import { cacheNames, PlainDecoder } from './plain-decoder.ts';
import type { CacheShape } from './row-cache.ts';
import { SharedDecoder } from './shared-decoder.ts';
import { WholeNumbers } from './whole-numbers.ts';

/** Where and how the graph runs. */
export interface LoadDecoderOptions {
  /** In the order of preference; `cpu` if absent. */
  devices?: readonly Device[];
  /** Only the first of them will do. */
  isStrictAboutDevice?: boolean;
  /** Threads of one model call. */
  threads?: number;
  /** Bytes of weights that a part of a graph has at least, between which others may write. */
  leastPartBytes?: number;
}

/** With SmolLM2-135M in 8 bits that is 8 parts, and a step of writing takes as long as in one; with 15 it took a tenth longer. */
const usualPartBytes = 20_000_000;

export interface LoadedDecoder {
  readonly decoder: Decoder;
  readonly component: PipelineComponent;
  /** Why rows are not said to keep their bits, where that is known without a call. */
  readonly spoiledBits?: string;
}

/**
 * Loads the model's graph, checks its inputs and outputs against the config, and calls it once.
 *
 * @throws DarkroomError naming the file: `model_unsupported` if it is not what config.json says, else `engine_failed` or
 * `out_of_memory`.
 */
export async function loadDecoder(model: TextModelDirectory, options: LoadDecoderOptions = {}): Promise<LoadedDecoder> {
  const { devices, isStrictAboutDevice, threads, leastPartBytes = usualPartBytes } = options;
  const { layers, keyHeads, headWidth, vocabularySize } = model.config;
  const shape = { tensors: 2 * layers, heads: keyHeads, width: headWidth };
  const session = await namingFile(
    model.graph,
    loadSplitSession({
      file: join(model.path, model.graph),
      ...(devices === undefined ? {} : { devices }),
      ...(isStrictAboutDevice === undefined ? {} : { isStrict: isStrictAboutDevice }),
      ...(threads === undefined ? {} : { threads }),
      cutBehind: 'GroupQueryAttention',
      leastPartBytes,
      sizedBy: 'input_ids',
      samples: [sampleOf(shape, { rows: 1, past: 3, width: 4 }), sampleOf(shape, { rows: 2, past: 5, width: 1 })],
    }),
  );
  try {
    checkTensors(model, session);
    const { whole } = session;
    // Only graphs with that operator are cut.
    const isShared = whole === undefined || (await namingFile(model.graph, writesByLength(whole, shape)));
    await namingFile(model.graph, readLastPlaces(session, { shape, isShared, tokens: model.config.maxModelTokens }));
    const decoder: Decoder = isShared
      ? new SharedDecoder({ session, vocabularySize, shape })
      : new PlainDecoder({ session: whole, vocabularySize, shape });
    const { device, refusals } = session;
    const spoiledBits = reasonOf(session, isShared);
    return { decoder, component: { part: 'onnx', device, refusals }, ...(spoiledBits && { spoiledBits }) };
  } catch (error) {
    await session.dispose();
    throw error;
  }
}

function reasonOf({ device, inputs }: SplitSession, isShared: boolean): string | undefined {
  const changes = 'the last bits of a row change with the rows that share its steps';
  if (device !== 'cpu') return `on ${device} ${changes}`;
  // Seldom: one of 40 texts of a tiny random model, and none of the calls that check-determinism.ts makes.
  const isHalf = inputs.some(({ name, type }) => name.startsWith('past_key_values.') && type === 'float16');
  return isShared && isHalf ? `with caches in float16 ${changes}` : undefined;
}

interface SampleSize {
  readonly rows: number;
  /** Columns before the new tokens. */
  readonly past: number;
  /** New tokens. */
  readonly width: number;
}

/** What a call feeds; its numbers mean nothing. */
function sampleOf({ tensors, heads, width: keyWidth }: CacheShape, { rows, past, width }: SampleSize) {
  const mask = new WholeNumbers(rows, past + width);
  for (let row = 0; row < rows; row++) mask.fill(row, 0, past + width);
  const dims = [rows, heads, past + width, keyWidth];
  // Not zeros: a model's keys of its padding token may be.
  const data = new Float32Array(dims.reduce((total, side) => total * side, 1)).fill(1);
  return {
    input_ids: new WholeNumbers(rows, width).tensor,
    attention_mask: mask.tensor,
    position_ids: new WholeNumbers(rows, width).tensor,
    ...Object.fromEntries(cacheNames('past_key_values', { tensors }).map((name) => [name, { data, dims }])),
  };
}

/**
 * Calls the graph with a past of which nothing is to be seen: GroupQueryAttention writes the new tokens where the row's length
 * says, which is over it; the plain layout puts them behind it.
 */
async function writesByLength(session: OnnxSession, shape: CacheShape): Promise<boolean> {
  const past = 8;
  const mask = new WholeNumbers(1, past + 2);
  mask.fill(0, past, 2);
  const sample = { ...sampleOf(shape, { rows: 1, past: past - 2, width: 2 }), attention_mask: mask.tensor };
  const feeds = { ...sample, ...keptLogits(session, { width: 2, from: 0 }).feeds };
  const known = new Set(session.inputs.map(({ name }) => name));
  const [present] = await session.runForAll(
    Object.fromEntries(Object.entries(feeds).filter(([name]) => known.has(name))),
    cacheNames('present', shape),
  );
  return present!.data.subarray(0, shape.width).some((value) => value !== 1);
}

/**
 * Calls the graph with two tokens at the last places of the longest text: its tables of angles may be shorter than config.json
 * says, which would only be found out by a row that gets so far.
 *
 * @throws DarkroomError `model_unsupported` if the operators refuse them.
 */
async function readLastPlaces(
  session: SplitSession,
  { shape, isShared, tokens }: { shape: CacheShape; isShared: boolean; tokens: number },
): Promise<void> {
  const { heads, width } = shape;
  const positions = new WholeNumbers(1, 2);
  for (const at of [0, 1]) positions.set(0, at, Math.max(0, tokens - 2) + at);
  const past = isShared ? Math.max(2, tokens) : 0;
  const mask = new WholeNumbers(1, Math.max(2, past));
  mask.fill(0, 0, Math.max(2, past));
  const isHalf = session.inputs.some(({ name, type }) => name.startsWith('past_key_values.') && type === 'float16');
  // One for all layers: what stands in it means nothing.
  const cache = {
    data: new (isHalf ? Uint16Array : Float32Array)(heads * past * width),
    dims: [1, heads, past, width],
  };
  const feeds = {
    ...keptLogits(session, { width: 2, from: 0 }).feeds,
    input_ids: new WholeNumbers(1, 2).tensor,
    attention_mask: mask.tensor,
    ...(session.inputs.some(({ name }) => name === 'position_ids') && { position_ids: positions.tensor }),
    ...Object.fromEntries(cacheNames('past_key_values', shape).map((name) => [name, cache])),
  };
  const into = new Map(cacheNames('present', shape).map((name) => [name, cache]));
  try {
    if (isShared)
      await lastOf(
        session.run(
          () => feeds,
          () => into,
        ),
      );
    else await session.whole!.run(feeds, 'logits');
  } catch (error) {
    if (!DarkroomError.isInstance(error) || error.code !== 'engine_failed') throw error;
    const { cause } = error;
    const words = cause instanceof Error ? cause.message : error.message;
    const problem = `cannot read a text of ${tokens} tokens, which config.json says in max_position_embeddings (${words})`;
    throw new DarkroomError('model_unsupported', 'language.load-decoder', problem, cause);
  }
}

function checkTensors({ graph, config }: TextModelDirectory, { inputs, outputs }: SplitSession): void {
  const shape = { tensors: 2 * config.layers, heads: config.keyHeads, width: config.headWidth };
  const caches = cacheNames('past_key_values', shape);
  const known = new Set(['input_ids', 'attention_mask', 'position_ids', ...keptLogitsInputs, ...caches]);
  const foreign = inputs.find(({ name }) => !known.has(name) && !name.startsWith('past_key_values.'));
  if (foreign !== undefined) throw modelFileError(graph, `has an input ${foreign.name}, which is not known`);
  const layers = inputs.filter(({ name }) => name.startsWith('past_key_values.')).length / 2;
  if (layers !== config.layers) {
    const problem = `has caches of ${layers} layers, and config.json says num_hidden_layers ${config.layers}`;
    throw modelFileError(graph, problem);
  }
  const expectShape = (specs: readonly TensorSpec[], name: string, expected: readonly (number | undefined)[]) => {
    const given = specs.find((spec) => spec.name === name)?.shape;
    if (given === undefined) throw modelFileError(graph, `has no ${name}`);
    const fits = expected.every(
      (side, at) => side === undefined || typeof given[at] !== 'number' || given[at] === side,
    );
    if (fits && given.length === expected.length) return;
    const wanted = expected.map((side) => side ?? '…').join(', ');
    throw modelFileError(graph, `${name} is [${given.join(', ')}], and config.json says [${wanted}]`);
  };
  for (const name of ['input_ids', 'attention_mask']) expectShape(inputs, name, [undefined, undefined]);
  const cache = [undefined, shape.heads, undefined, shape.width];
  for (const name of caches) expectShape(inputs, name, cache);
  for (const name of cacheNames('present', shape)) expectShape(outputs, name, cache);
  expectShape(outputs, 'logits', [undefined, undefined, config.vocabularySize]);
}

/** The same error, its message beginning with the file that it is about. */
async function namingFile<Value>(file: string, attempt: Promise<Value>): Promise<Value> {
  try {
    return await attempt;
  } catch (error) {
    if (!DarkroomError.isInstance(error)) throw error;
    const { code, op, message, cause } = error;
    throw new DarkroomError(code, op, `${file}: ${message}`, cause);
  }
}

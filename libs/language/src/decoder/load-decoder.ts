import type { Device, PipelineComponent } from '@darkroom/core';
import {
  lengthOf,
  loadSplitSession,
  type OnnxSession,
  type SplitSession,
  type TensorSpec,
  type TensorValue,
} from '@darkroom/runtime';
import { DarkroomError } from '@darkroom/core';
import { join } from 'node:path';
import type { TextModelDirectory } from '../model/text-model-directory.ts';
import { modelFileError, withFileName } from '@darkroom/runtime/model-file';
import { type Decoder, lastOf } from './decoder.ts';
import { type DecoderTokens, tokenIds } from './decoder-tokens.ts';
import { keptLogits, keptLogitsInputs } from './kept-logits.ts';
import { cacheNames, PlainDecoder } from './plain-decoder.ts';
import type { CacheShape } from './row-cache.ts';
import { SharedDecoder } from './shared-decoder.ts';
import { Int64Matrix } from './int64-matrix.ts';

/** Device, threads and partitioning of the graph. */
export interface LoadDecoderOptions {
  /** In order of preference; default `cpu`. */
  devices?: readonly Device[];
  /** Threads of one model call. */
  threads?: number;
  /** Min bytes of weights per part of a graph; other rows can step between parts. */
  minPartBytes?: number;
}

/** Cuts SmolLM2-135M in INT8 into 8 parts, with no loss of decoding speed; 15 parts cost a tenth. */
const defaultPartBytes = 20_000_000;

export interface LoadedDecoder {
  readonly decoder: Decoder;
  readonly component: PipelineComponent;
  /** Why batching may change a row's bits, if that is known without a test call. */
  readonly nondeterminismReason?: string | undefined;
}

/**
 * Loads the model's graph, checks its inputs and outputs against the config, and calls it once.
 *
 * @param tokens creates the graph's input of new tokens; the decoder disposes of it.
 * @throws DarkroomError naming the file: `model_unsupported` if the graph does not match config.json, else
 * `engine_failed` or `out_of_memory`.
 */
export async function loadDecoder(
  model: TextModelDirectory,
  options: LoadDecoderOptions = {},
  tokens: DecoderTokens = tokenIds,
): Promise<LoadedDecoder> {
  const { vocabularySize } = model.config;
  const shape = cacheShapeOf(model.config);
  const session = await withFileName(model.graph, loadGraph(model, options, tokens));
  try {
    checkTensors(model, session, tokens);
    const { whole } = session;
    // Only graphs with GroupQueryAttention are cut.
    const isShared = whole === undefined || (await withFileName(model.graph, writesInPlace(whole, shape, tokens)));
    await withFileName(
      model.graph,
      checkLastPositions(session, tokens, {
        shape,
        plain: isShared ? undefined : whole,
        length: model.config.maxModelTokens,
      }),
    );
    const decoder: Decoder = isShared
      ? new SharedDecoder({ session, tokens, vocabularySize, shape })
      : new PlainDecoder({ session: whole, tokens, vocabularySize, shape });
    const { device, refusals } = session;
    return {
      decoder,
      component: { part: 'onnx', device, refusals },
      nondeterminismReason: reasonOf(session, isShared),
    };
  } catch (error) {
    await session.dispose();
    throw error;
  }
}

function loadGraph(
  { path, graph, config }: TextModelDirectory,
  { devices, threads, minPartBytes = defaultPartBytes }: LoadDecoderOptions,
  tokens: DecoderTokens,
): Promise<SplitSession> {
  const shape = cacheShapeOf(config);
  return loadSplitSession({
    file: join(path, graph),
    devices,
    threads,
    cutAfter: 'GroupQueryAttention',
    minPartBytes,
    sizedBy: tokens.inputName,
    samples: [
      sampleOf(shape, { rows: 1, past: 3, width: 4 }, tokens),
      sampleOf(shape, { rows: 2, past: 5, width: 1 }, tokens),
    ],
  });
}

function cacheShapeOf({ layers, keyHeads, headWidth }: TextModelDirectory['config']): CacheShape {
  return { tensors: 2 * layers, heads: keyHeads, width: headWidth };
}

function reasonOf({ device, inputs }: SplitSession, isShared: boolean): string | undefined {
  const changes = 'the last bits of a row change with the rows that share its steps';
  if (device !== 'cpu') return `on ${device} ${changes}`;
  // Rare: 1 of 40 texts of a tiny random model, and none of the calls in check-determinism.ts.
  const isHalf = inputs.some(({ name, type }) => name.startsWith('past_key_values.') && type === 'float16');
  return isShared && isHalf ? `with caches in float16 ${changes}` : undefined;
}

interface SampleSize {
  readonly rows: number;
  /** Columns of the past. */
  readonly past: number;
  /** New tokens per row. */
  readonly width: number;
}

/** Returns the inputs of a call with arbitrary contents. */
function sampleOf(
  { tensors, heads, width: keyWidth }: CacheShape,
  { rows, past, width }: SampleSize,
  tokens: DecoderTokens,
): Record<string, TensorValue> {
  const mask = new Int64Matrix(rows, past + width);
  for (let row = 0; row < rows; row++) mask.fill(row, 0, past + width);
  const dims = [rows, heads, past + width, keyWidth];
  // Not zeros: the model's keys of token 0 may be zero.
  const data = new Float32Array(lengthOf(dims)).fill(1);
  return {
    [tokens.inputName]: tokens.sampleOf(rows, width),
    attention_mask: mask.tensor,
    position_ids: new Int64Matrix(rows, width).tensor,
    ...Object.fromEntries(cacheNames('past_key_values', { tensors }).map((name) => [name, { data, dims }])),
  };
}

/**
 * Detects by a call whether the graph writes in place. With a fully masked past, GroupQueryAttention writes the new
 * tokens at the row's length, over the past; the plain layout appends them.
 */
async function writesInPlace(session: OnnxSession, shape: CacheShape, tokens: DecoderTokens): Promise<boolean> {
  const past = 8;
  const mask = new Int64Matrix(1, past + 2);
  mask.fill(0, past, 2);
  const sample = { ...sampleOf(shape, { rows: 1, past: past - 2, width: 2 }, tokens), attention_mask: mask.tensor };
  const feeds = { ...sample, ...keptLogits(session, { width: 2, from: 0 }).feeds };
  const known = new Set(session.inputs.map(({ name }) => name));
  const present = await session.run(
    Object.fromEntries(Object.entries(feeds).filter(([name]) => known.has(name))),
    'present.0.key',
  );
  return present.data.subarray(0, shape.width).some((value) => value !== 1);
}

/**
 * Calls the graph at the last two positions of the longest text: its rotary tables may be shorter than config.json
 * says, which only a row of that length would find out.
 *
 * @throws DarkroomError `model_unsupported` if the call fails.
 */
async function checkLastPositions(
  session: SplitSession,
  tokens: DecoderTokens,
  { shape, plain, length }: { shape: CacheShape; plain: OnnxSession | undefined; length: number },
): Promise<void> {
  const { heads, width } = shape;
  const positions = new Int64Matrix(1, 2);
  for (const at of [0, 1]) positions.set(0, at, Math.max(0, length - 2) + at);
  const past = plain === undefined ? Math.max(2, length) : 0;
  const mask = new Int64Matrix(1, Math.max(2, past));
  mask.fill(0, 0, Math.max(2, past));
  const isHalf = session.inputs.some(({ name, type }) => name.startsWith('past_key_values.') && type === 'float16');
  // One buffer serves all layers: its contents are irrelevant.
  const cache = {
    data: new (isHalf ? Uint16Array : Float32Array)(heads * past * width),
    dims: [1, heads, past, width],
  };
  const feeds = {
    ...keptLogits(session, { width: 2, from: 0 }).feeds,
    [tokens.inputName]: tokens.sampleOf(1, 2),
    attention_mask: mask.tensor,
    ...(session.inputs.some(({ name }) => name === 'position_ids') && { position_ids: positions.tensor }),
    ...Object.fromEntries(cacheNames('past_key_values', shape).map((name) => [name, cache])),
  };
  const into = new Map(cacheNames('present', shape).map((name) => [name, cache]));
  try {
    if (plain === undefined)
      await lastOf(
        session.run(
          () => feeds,
          () => into,
        ),
      );
    else await plain.run(feeds, 'logits');
  } catch (error) {
    if (!DarkroomError.isInstance(error) || error.code !== 'engine_failed') throw error;
    const { cause } = error;
    const reason = cause instanceof Error ? cause.message : error.message;
    const problem = `cannot read ${length} tokens, the max_position_embeddings of config.json (${reason})`;
    throw new DarkroomError('model_unsupported', 'language.load-decoder', problem, cause);
  }
}

function checkTensors(
  { graph, config }: TextModelDirectory,
  { inputs, outputs }: SplitSession,
  { inputName }: DecoderTokens,
): void {
  const shape = cacheShapeOf(config);
  const caches = cacheNames('past_key_values', shape);
  const known = new Set([inputName, 'attention_mask', 'position_ids', ...keptLogitsInputs, ...caches]);
  const unknown = inputs.find(({ name }) => !known.has(name) && !name.startsWith('past_key_values.'));
  if (unknown !== undefined) throw modelFileError(graph, `has an input ${unknown.name}, which is not supported`);
  const layers = inputs.filter(({ name }) => name.startsWith('past_key_values.')).length / 2;
  if (layers !== config.layers) {
    const problem = `has caches of ${layers} layers, expected num_hidden_layers in config.json, ${config.layers}`;
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
    throw modelFileError(graph, `${name} is [${given.join(', ')}], expected by config.json [${wanted}]`);
  };
  expectShape(
    inputs,
    inputName,
    inputName === 'input_ids' ? [undefined, undefined] : [undefined, undefined, config.hiddenSize],
  );
  expectShape(inputs, 'attention_mask', [undefined, undefined]);
  const cache = [undefined, shape.heads, undefined, shape.width];
  for (const name of caches) expectShape(inputs, name, cache);
  for (const name of cacheNames('present', shape)) expectShape(outputs, name, cache);
  expectShape(outputs, 'logits', [undefined, undefined, config.vocabularySize]);
}

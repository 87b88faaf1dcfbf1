import { pairUp, valueOfKey } from '@darkroom/core';
import { readFile } from 'node:fs/promises';
import { cutGraph, type GraphPart } from './cut-graph.ts';
import { GrowingArray } from './growing-array.ts';
import { loadOnnxSession, type LoadedSession, type LoadOnnxSessionOptions } from './onnx-session.ts';
import { lengthOf, notTensor, type TensorSpec, type TensorValue } from './tensor-values.ts';

export interface LoadSplitSessionOptions extends LoadOnnxSessionOptions {
  /** Path of the `.onnx` file. */
  file: string;
  /** Operator type: the graph is cut after nodes of it. */
  cutAfter: string;
  /** Min bytes of weights per part. */
  minPartBytes: number;
  /**
   * Name of a two-dimensional input. Each dimension of the values passed between parts equals one of its dimensions,
   * their product, or a constant.
   */
  sizedBy: string;
  /** Inputs of two calls with different dimensions, to derive those of passed values. The contents are irrelevant. */
  samples: readonly [Feeds, Feeds];
}

type Feeds = Readonly<Record<string, TensorValue>>;
type Buffers = ReadonlyMap<string, TensorValue>;

/** A dimension: a constant, or one derived from the input `sizedBy`. */
type Side = number | 'first' | 'second' | 'product';

/** The dimensions of the input `sizedBy`. */
type Size = readonly [number, number];

/** A value passed from one part to later ones. */
interface Passed {
  readonly create: (size: number) => TensorValue['data'];
  readonly sides: readonly Side[];
}

interface Part {
  readonly session: LoadedSession;
  readonly passedNames: readonly string[];
}

type Parts = readonly [Part, ...Part[]];

/** ONNX's numbers and array types of the element types that may be passed between parts. */
const passedTypes: Readonly<Record<string, { number: number; create: Passed['create'] }>> = {
  float32: { number: 1, create: (size) => new Float32Array(size) },
  uint8: { number: 2, create: (size) => new Uint8Array(size) },
  int8: { number: 3, create: (size) => new Int8Array(size) },
  bool: { number: 9, create: (size) => new Uint8Array(size) },
  int32: { number: 6, create: (size) => new Int32Array(size) },
  int64: { number: 7, create: (size) => new BigInt64Array(size) },
};

/**
 * Loads a graph in parts, so that other calls can use the device between two of them. A graph that cannot be cut
 * becomes a single part.
 *
 * @throws DarkroomError as `loadOnnxSession`.
 */
export async function loadSplitSession(options: LoadSplitSessionOptions): Promise<SplitSession> {
  const parts = await loadParts(options);
  const passed = parts && (await passedOf(parts, options).catch(() => undefined));
  if (isFilled(parts) && passed !== undefined) return new SplitSession(parts, passed, options.sizedBy);
  for (const { session } of parts ?? []) await session.dispose();
  const session = await loadOnnxSession(options);
  return new SplitSession([{ session, passedNames: [] }], new Map(), options.sizedBy);
}

function isFilled(parts: readonly Part[] | undefined): parts is Parts {
  return parts !== undefined && parts.length > 0;
}

function sizeIn(feeds: Feeds, name: string): Size {
  const [first, second] = feeds[name]?.dims ?? [];
  if (first === undefined || second === undefined) throw new RangeError(`${name} must have two dimensions`);
  return [first, second];
}

async function loadParts(options: LoadSplitSessionOptions): Promise<Part[] | undefined> {
  const cut = await cutFile(options);
  if (cut === undefined || cut.length === 1) return undefined;
  const types = new Map<string, number>();
  const parts: Part[] = [];
  try {
    for (const { passedNames, toModel } of cut) {
      const file = toModel((name) => valueOfKey(types, name));
      const session = await loadOnnxSession({ ...options, file });
      parts.push({ session, passedNames });
      for (const { name, type } of session.outputs) types.set(name, passedTypes[type]?.number ?? 0);
    }
    return parts;
  } catch {
    for (const { session } of parts) await session.dispose();
    return undefined;
  }
}

async function cutFile({ file, cutAfter, minPartBytes }: LoadSplitSessionOptions): Promise<GraphPart[] | undefined> {
  try {
    return cutGraph(await readFile(file), cutAfter, minPartBytes);
  } catch {
    // Loading the file as a whole gives ONNX Runtime's error, which is more precise.
    return undefined;
  }
}

/** @returns undefined if the dimensions of a passed value cannot be derived. */
async function passedOf(
  parts: readonly Part[],
  { samples, sizedBy }: LoadSplitSessionOptions,
): Promise<Map<string, Passed> | undefined> {
  const [left, right] = [await valuesOf(parts, samples[0]), await valuesOf(parts, samples[1])];
  const sizes = samples.map((feeds) => sizeIn(feeds, sizedBy));
  const passed = new Map<string, Passed>();
  for (const { session, passedNames } of parts) {
    const types = new Map(session.outputs.map((output) => [output.name, output.type]));
    for (const name of passedNames) {
      const type = passedTypes[valueOfKey(types, name)];
      const found = pairUp(valueOfKey(left, name).dims, valueOfKey(right, name).dims);
      const sides = found.map((pair) => sideOf(pair, sizes));
      if (type === undefined || sides.includes(undefined)) return undefined;
      passed.set(name, { create: type.create, sides: sides as Side[] });
    }
  }
  return passed;
}

async function valuesOf(parts: readonly Part[], feeds: Feeds): Promise<ReadonlyMap<string, TensorValue>> {
  const values = new Map(Object.entries(feeds));
  for (const { session, passedNames } of parts) {
    if (passedNames.length === 0) continue;
    const own = Object.fromEntries(session.inputs.map(({ name }) => [name, valueOfKey(values, name)]));
    for (const [name, value] of await session.runUntyped(own, passedNames)) values.set(name, value);
  }
  return values;
}

const derivedSides = {
  first: ([first]: Size) => first,
  second: ([, second]: Size) => second,
  product: ([first, second]: Size) => first * second,
};

/** @param found the dimension in the two sample calls. */
function sideOf(found: readonly [number, number], sizes: readonly Size[]): Side | undefined {
  if (found[0] === found[1]) return found[0];
  const names = ['first', 'second', 'product'] as const;
  return names.find((name) => sizes.every((size, at) => derivedSides[name](size) === found[at]));
}

/** A loaded graph, in one part or several. */
export class SplitSession {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly device: LoadedSession['device'];
  readonly refusals: LoadedSession['refusals'];
  /** The session of a graph that was not cut. */
  readonly whole: LoadedSession | undefined;
  readonly #parts: readonly Part[];
  readonly #passed: ReadonlyMap<string, Passed>;
  readonly #sizedBy: string;
  /** Intermediate values of earlier calls, for reuse. */
  readonly #idle: PassedValues[] = [];

  constructor(parts: Parts, passed: ReadonlyMap<string, Passed>, sizedBy: string) {
    this.#parts = parts;
    this.#passed = passed;
    this.#sizedBy = sizedBy;
    const sessions = parts.map(({ session }) => session);
    const { session: first } = parts[0];
    ({ device: this.device, refusals: this.refusals } = first);
    this.whole = parts.length === 1 ? first : undefined;
    this.inputs = externalSpecs(sessions.map((session) => session.inputs).flat(), passed);
    this.outputs = externalSpecs(sessions.map((session) => session.outputs).flat(), passed);
  }

  /**
   * Runs the graph and writes outputs to their buffers, yielding between parts. Skips parts that no requested output
   * needs.
   *
   * @param feedsOf called before each part: inputs may have moved.
   * @param intoOf likewise, for outputs.
   */
  async *run(feedsOf: () => Feeds, intoOf: () => Buffers): AsyncGenerator<void, void> {
    const all = intoOf();
    const last = this.#parts.findLastIndex(({ session }) => requestedOutputs(session, all).length > 0);
    const values = this.#idle.pop() ?? new PassedValues(this.#passed);
    const passed = values.of(sizeIn(feedsOf(), this.#sizedBy));
    try {
      for (const [at, { session, passedNames }] of this.#parts.slice(0, last + 1).entries()) {
        if (at > 0) yield;
        const [feeds, into] = [feedsOf(), intoOf()];
        const fed = session.inputs.map(({ name }) => [name, feeds[name] ?? valueOfKey(passed, name)] as const);
        const buffers = [...requestedOutputs(session, into), ...passedNames].map(
          (name) => [name, into.get(name) ?? valueOfKey(passed, name)] as const,
        );
        await session.runInto(Object.fromEntries(fed), new Map(buffers));
      }
    } finally {
      this.#idle.push(values);
    }
  }

  async dispose(): Promise<void> {
    for (const { session } of this.#parts) await session.dispose();
  }
}

/** Reusable memory for the values that one call passes between parts. */
class PassedValues {
  readonly #values: readonly { name: string; sides: readonly Side[]; memory: GrowingArray<TensorValue['data']> }[];
  #last: Buffers = new Map();

  constructor(passed: ReadonlyMap<string, Passed>) {
    this.#values = Array.from(passed, ([name, { create, sides }]) => {
      return { name, sides, memory: new GrowingArray(create) };
    });
  }

  of(size: Size): Buffers {
    const buffers = this.#values.map(({ name, sides, memory }): [string, TensorValue] => {
      const dims = sides.map((side) => (typeof side === 'number' ? side : derivedSides[side](size)));
      const data = memory.of(lengthOf(dims));
      const last = this.#last.get(name);
      // Reuse the value object if nothing changed: ONNX Runtime's tensor is then reused too.
      const isAlike = last?.data === data && last.dims.every((side, at) => side === dims[at]);
      return [name, isAlike ? last : { data, dims }];
    });
    this.#last = new Map(buffers);
    return this.#last;
  }
}

function requestedOutputs({ outputs }: LoadedSession, into: Buffers): string[] {
  return outputs.flatMap(({ name }) => (into.has(name) ? name : []));
}

/** Returns the inputs or outputs that are not passed between parts, each once. */
function externalSpecs(specs: readonly TensorSpec[], passed: ReadonlyMap<string, Passed>): TensorSpec[] {
  const outer = specs.filter(({ name, type }) => !passed.has(name) && type !== notTensor);
  return [...new Map(outer.map((spec) => [spec.name, spec])).values()];
}

import { readFile } from 'node:fs/promises';
import { cutGraph, type GraphPart } from './cut-graph.ts';
import { GrowingArray } from './growing-array.ts';
import { loadOnnxSession, type LoadedSession, type LoadOnnxSessionOptions } from './onnx-session.ts';
import { notTensor, type TensorSpec, type TensorValue } from './tensor-values.ts';

export interface LoadSplitSessionOptions extends LoadOnnxSessionOptions {
  /** Path of the `.onnx` file. */
  file: string;
  /** It is cut behind nodes of this operator. */
  cutBehind: string;
  /** Bytes of weights that a part has at least. */
  leastPartBytes: number;
  /** An input of two dimensions: those of what goes from part to part are these, their product, or always the same. */
  sizedBy: string;
  /** Two calls that tell which, with other dimensions. What they feed has no need to make sense. */
  samples: readonly [Feeds, Feeds];
}

type Feeds = Readonly<Record<string, TensorValue>>;
type Places = ReadonlyMap<string, TensorValue>;

/** A dimension: a number, or what it follows. */
type Side = number | 'first' | 'second' | 'product';

/** A value that goes from one part to later ones. */
interface Passed {
  readonly spec: TensorSpec;
  readonly sides: readonly Side[];
}

interface Part {
  readonly session: LoadedSession;
  readonly leaving: readonly string[];
}

/** ONNX's numbers of the types that may go from part to part, and their arrays. */
const passedTypes: Readonly<Record<string, { number: number; create: (size: number) => TensorValue['data'] }>> = {
  float32: { number: 1, create: (size) => new Float32Array(size) },
  uint8: { number: 2, create: (size) => new Uint8Array(size) },
  int8: { number: 3, create: (size) => new Int8Array(size) },
  int32: { number: 6, create: (size) => new Int32Array(size) },
  int64: { number: 7, create: (size) => new BigInt64Array(size) },
};

/**
 * Loads a graph in parts, so that others may have the device between two of them. One that cannot be cut is a single part.
 *
 * @throws DarkroomError as `loadOnnxSession`.
 */
export async function loadSplitSession(options: LoadSplitSessionOptions): Promise<SplitSession> {
  const parts = await loadParts(options);
  const passed = parts && (await passedOf(parts, options).catch(() => undefined));
  if (parts !== undefined && passed !== undefined) return new SplitSession(parts, passed, options.sizedBy);
  for (const { session } of parts ?? []) await session.dispose();
  const session = await loadOnnxSession(options);
  return new SplitSession([{ session, leaving: [] }], new Map(), options.sizedBy);
}

async function loadParts(options: LoadSplitSessionOptions): Promise<Part[] | undefined> {
  const cut = await cutFile(options);
  if (cut === undefined || cut.length === 1) return undefined;
  const types = new Map<string, number>();
  const parts: Part[] = [];
  try {
    for (const { leaving, toModel } of cut) {
      const file = toModel((name) => types.get(name)!);
      const session = await loadOnnxSession({ ...options, file });
      parts.push({ session, leaving });
      for (const { name, type } of session.outputs) types.set(name, passedTypes[type]?.number ?? 0);
    }
    return parts;
  } catch {
    for (const { session } of parts) await session.dispose();
    return undefined;
  }
}

async function cutFile({ file, cutBehind, leastPartBytes }: LoadSplitSessionOptions): Promise<GraphPart[] | undefined> {
  try {
    return cutGraph(await readFile(file), cutBehind, leastPartBytes);
  } catch {
    // What is wrong with it, ONNX Runtime says better.
    return undefined;
  }
}

/** @returns undefined if there are values of which it cannot be said how large they are. */
async function passedOf(
  parts: readonly Part[],
  { samples, sizedBy }: LoadSplitSessionOptions,
): Promise<Map<string, Passed> | undefined> {
  const [left, right] = [await valuesOf(parts, samples[0]), await valuesOf(parts, samples[1])];
  const sizes = samples.map((feeds) => feeds[sizedBy]!.dims);
  const passed = new Map<string, Passed>();
  for (const { session, leaving } of parts) {
    for (const name of leaving) {
      const spec = session.outputs.find((output) => output.name === name)!;
      const sides = left.get(name)!.dims.map((side, at) => sideOf([side, right.get(name)!.dims[at]!], sizes));
      if (passedTypes[spec.type] === undefined || sides.includes(undefined)) return undefined;
      passed.set(name, { spec, sides: sides as Side[] });
    }
  }
  return passed;
}

async function valuesOf(parts: readonly Part[], feeds: Feeds): Promise<ReadonlyMap<string, TensorValue>> {
  const values = new Map(Object.entries(feeds));
  for (const { session, leaving } of parts) {
    if (leaving.length === 0) continue;
    const own = Object.fromEntries(session.inputs.map(({ name }) => [name, values.get(name)!]));
    for (const [name, value] of await session.runAsItIs(own, leaving)) values.set(name, value);
  }
  return values;
}

const followed = {
  first: ([first]: readonly number[]) => first!,
  second: ([, second]: readonly number[]) => second!,
  product: ([first, second]: readonly number[]) => first! * second!,
};

/** @param found of both samples. */
function sideOf(found: readonly [number, number], sizes: readonly (readonly number[])[]): Side | undefined {
  if (found[0] === found[1]) return found[0];
  const names = ['first', 'second', 'product'] as const;
  return names.find((name) => sizes.every((size, at) => followed[name](size) === found[at]));
}

/** A loaded graph, in one part or several. */
export class SplitSession {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly #parts: readonly Part[];
  readonly #passed: ReadonlyMap<string, Passed>;
  readonly #sizedBy: string;
  /** What calls before had for what goes from part to part. */
  readonly #idle: PassedValues[] = [];

  constructor(parts: readonly Part[], passed: ReadonlyMap<string, Passed>, sizedBy: string) {
    this.#parts = parts;
    this.#passed = passed;
    this.#sizedBy = sizedBy;
    const sessions = parts.map(({ session }) => session);
    this.inputs = outerOf(sessions.map((session) => session.inputs).flat(), passed);
    this.outputs = outerOf(sessions.map((session) => session.outputs).flat(), passed);
  }

  /** The session of a graph that was not cut. */
  get whole(): LoadedSession | undefined {
    return this.#parts.length === 1 ? this.#parts[0]!.session : undefined;
  }

  get device(): LoadedSession['device'] {
    return this.#parts[0]!.session.device;
  }

  get refusals(): LoadedSession['refusals'] {
    return this.#parts[0]!.session.refusals;
  }

  /**
   * Runs the graph and writes outputs to their places. Parts that none of these need do not run.
   *
   * @param feedsOf asked before each part: what is fed may lie elsewhere then.
   * @param intoOf likewise.
   */
  async *run(feedsOf: () => Feeds, intoOf: () => Places): AsyncGenerator<void, void> {
    const all = intoOf();
    const last = this.#parts.findLastIndex(({ session }) => wanted(session, all).length > 0);
    const values = this.#idle.pop() ?? new PassedValues(this.#passed);
    const passed = values.of(feedsOf()[this.#sizedBy]!.dims);
    try {
      for (const [at, { session, leaving }] of this.#parts.slice(0, last + 1).entries()) {
        if (at > 0) yield;
        const [feeds, into] = [feedsOf(), intoOf()];
        const fed = session.inputs.map(({ name }) => [name, passed.get(name) ?? feeds[name]!] as const);
        const places = [...wanted(session, into), ...leaving].map(
          (name) => [name, into.get(name) ?? passed.get(name)!] as const,
        );
        await session.runInto(Object.fromEntries(fed), new Map(places));
      }
    } finally {
      this.#idle.push(values);
    }
  }

  async dispose(): Promise<void> {
    for (const { session } of this.#parts) await session.dispose();
  }
}

/** Memory of one call after another for what goes from part to part. */
class PassedValues {
  readonly #values: readonly { name: string; sides: readonly Side[]; memory: GrowingArray<TensorValue['data']> }[];
  #last: Places = new Map();

  constructor(passed: ReadonlyMap<string, Passed>) {
    this.#values = Array.from(passed, ([name, { spec, sides }]) => {
      return { name, sides, memory: new GrowingArray(passedTypes[spec.type]!.create) };
    });
  }

  /** @param size dimensions of the input that the others follow. */
  of(size: readonly number[]): Places {
    const places = this.#values.map(({ name, sides, memory }): [string, TensorValue] => {
      const dims = sides.map((side) => (typeof side === 'number' ? side : followed[side](size)));
      const data = memory.of(dims.reduce((total, side) => total * side, 1));
      const last = this.#last.get(name);
      // Of calls that are alike ONNX Runtime's tensors can stay, too.
      const isAlike = last?.data === data && last.dims.every((side, at) => side === dims[at]);
      return [name, isAlike ? last : { data, dims }];
    });
    this.#last = new Map(places);
    return this.#last;
  }
}

function wanted({ outputs }: LoadedSession, into: Places): string[] {
  return outputs.flatMap(({ name }) => (into.has(name) ? name : []));
}

/** Of what parts take or give, what does not go from one to another, each once. */
function outerOf(specs: readonly TensorSpec[], passed: ReadonlyMap<string, Passed>): TensorSpec[] {
  const outer = specs.filter(({ name, type }) => !passed.has(name) && type !== notTensor);
  return [...new Map(outer.map((spec) => [spec.name, spec])).values()];
}

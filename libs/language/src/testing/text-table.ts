import { isNonEmpty, mapNonEmpty } from '@darkroom/core';
import type { DarkroomError, RowCheckpoint, RowEvent, RowOutput, RowRequest } from '@darkroom/core';
import type { TextInput, TextOutputFacts } from '@darkroom/kinds';
import type { TextPipeline } from '../pipelines/text-pipeline.ts';
import type { TextRow } from '../row/text-row.ts';
import { RandomNumbers } from '../sampling/random-numbers.ts';

/** Creates a request, greedy by default. */
export function textInput(changes: Partial<TextInput> & Pick<TextInput, 'prompt'>): TextInput {
  const sampling = { temperature: 0, topP: 1, topK: 0, minP: 0, presencePenalty: 0, frequencyPenalty: 0 };
  return { n: 1, maxTokens: 24, ...sampling, logitBias: {}, seed: 1, stop: [], ignoreEos: false, ...changes };
}

/** Result of a row. */
export interface TextResult {
  readonly events: readonly RowEvent[];
  readonly text: string;
  readonly tokens: readonly number[];
  readonly facts: TextOutputFacts;
  readonly output: RowOutput;
  /** Checkpoints after each step with events, except the last. */
  readonly checkpoints: readonly RowCheckpoint[];
}

interface Entry {
  readonly name: string;
  readonly row: TextRow;
  readonly events: RowEvent[];
  readonly checkpoints: RowCheckpoint[];
}

/** Options of a request's rows. */
interface JoinOptions extends Pick<RowRequest, 'attachments'> {
  /** Default: alice. */
  readonly owner?: string;
}

/** A hand-stepped table of rows, in place of an engine: tests decide when rows join and leave. */
export class TextTable {
  readonly results = new Map<string, TextResult>();
  readonly failures = new Map<string, DarkroomError>();
  /** Shape and rows of each call. */
  readonly calls: { readonly shape: string; readonly names: readonly string[] }[] = [];
  readonly #pipeline: TextPipeline;
  #entries: Entry[] = [];

  constructor(pipeline: TextPipeline) {
    this.#pipeline = pipeline;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Adds the rows of a request. With several outputs, each is named `name/index`. */
  async join(
    name: string,
    input: TextInput,
    checkpoint?: RowCheckpoint,
    { owner = 'alice', attachments }: JoinOptions = {},
  ): Promise<void> {
    const checkpoints = new Map(checkpoint === undefined ? [] : [[0, checkpoint]]);
    const images = attachments && { attachments };
    for (const row of await this.#pipeline.createRows({ id: name, owner, input, checkpoints, ...images }))
      this.#entries.push({ name: input.n > 1 ? `${name}/${row.index}` : name, row, events: [], checkpoints: [] });
  }

  /** Removes a row. */
  leave(name: string): void {
    for (const { row } of this.#entries.filter((entry) => entry.name === name)) this.#pipeline.release(row);
    this.#entries = this.#entries.filter((entry) => entry.name !== name);
  }

  /** Takes one step of each shape. */
  async tick(): Promise<void> {
    for (const shape of new Set(this.#entries.map(({ row }) => row.shapeKey))) {
      const all = this.#entries.filter(({ row }) => row.shapeKey === shape);
      for (const entry of all) if (entry.row.isDone) await this.#end(entry);
      const group = all.filter(({ row }) => !row.isDone);
      if (!isNonEmpty(group)) continue;
      const { events, failures } = await this.#pipeline.step(mapNonEmpty(group, ({ row }) => row));
      this.calls.push({ shape, names: group.map(({ name }) => name) });
      for (const entry of group) {
        entry.events.push(...(events.get(entry.row) ?? []));
        if (events.has(entry.row) && !entry.row.isDone) entry.checkpoints.push(this.#pipeline.checkpoint(entry.row));
        const failure = failures.get(entry.row);
        if (failure !== undefined) this.failures.set(entry.name, failure);
        if (failure !== undefined || entry.row.isDone) await this.#end(entry);
      }
    }
  }

  /** Steps until all rows are done. */
  async run(): Promise<void> {
    while (this.#entries.length > 0) await this.tick();
  }

  /** Writes one text without other rows. */
  async write(input: TextInput, checkpoint?: RowCheckpoint, options?: JoinOptions): Promise<TextResult> {
    await this.join('alone', input, checkpoint, options);
    await this.run();
    return this.results.get('alone')!;
  }

  async #end(entry: Entry): Promise<void> {
    const { name, row, events, checkpoints } = entry;
    if (row.isDone) {
      const output = await this.#pipeline.finish(row);
      const facts = output.facts as unknown as TextOutputFacts;
      const text = new TextDecoder().decode(output.data);
      this.results.set(name, { events, text, tokens: row.written.tokens, facts, output, checkpoints });
    }
    this.leave(name);
  }
}

/** Returns a request determined by the number: short or long, greedy or not, for the given prompt or random tokens. */
export function randomInput(number: number, fixedPrompt: readonly number[]): TextInput {
  const random = new RandomNumbers(number);
  const between = (low: number, high: number) => low + Math.floor(random.next() * (high - low + 1));
  const isLong = random.next() < 0.3;
  const prompt = Array.from({ length: between(1, isLong ? 200 : 40) }, () => between(4, 6143));
  const isGreedy = random.next() < 0.3;
  return textInput({
    prompt: random.next() < 0.5 ? fixedPrompt : prompt,
    maxTokens: between(1, 40),
    temperature: isGreedy ? 0 : 0.5 + random.next(),
    topK: between(0, 1) * 40,
    topP: between(0, 1) === 0 ? 1 : 0.9,
    minP: between(0, 3) === 0 ? 0.02 : 0,
    frequencyPenalty: between(0, 3) === 0 ? 0.5 : 0,
    seed: number,
    ignoreEos: random.next() < 0.5,
  });
}

/** Writes the same texts in random batches: rows join and leave at any step, some from a checkpoint. */
export async function writeInBatches(
  pipeline: TextPipeline,
  { seed, inputOf, alone }: { seed: number; inputOf: (at: number) => TextInput; alone: readonly TextResult[] },
): Promise<TextResult[]> {
  const random = new RandomNumbers(seed);
  const table = new TextTable(pipeline);
  const waiting = [...alone.keys()];
  while (waiting.length > 0 || table.size > 0) {
    while (waiting.length > 0 && table.size < 12 && random.next() < 0.5) {
      const [at] = waiting.splice(Math.floor(random.next() * waiting.length), 1);
      const { checkpoints } = alone[at!]!;
      const checkpoint = checkpoints[Math.floor(random.next() * 2 * checkpoints.length)];
      await table.join(`${at}`, inputOf(at!), checkpoint);
    }
    await table.tick();
  }
  return alone.map((_, at) => table.results.get(`${at}`)!);
}

/**
 * Returns the difference from the text written alone; empty if equal. After a checkpoint, events must equal the last
 * ones of the full run; with `logprobs` they show the bits of all logits.
 */
export function differenceOf(one: TextResult, alone: TextResult): string {
  if (one.text !== alone.text || one.tokens.join() !== alone.tokens.join()) return `${one.text} ≠ ${alone.text}`;
  const [said, all] = [one, alone].map(({ events }) => events.filter(({ type }) => type !== 'progress'));
  const [left, right] = [said!, all!.slice(all!.length - said!.length)].map((events) => JSON.stringify(events));
  return left === right ? '' : `${left} ≠ ${right}`;
}

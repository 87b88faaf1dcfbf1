/** The model calls of steps: which rows share a call, how much of their prompts they read, and calls in parts. */
import { type NonEmpty, pairUp } from '@darkroom/core';
import type { TextRow } from '../row/text-row.ts';
import type { SharedPrefixes } from './shared-prefixes.ts';
import type { TextPipelineOptions } from './text-pipeline.ts';

/** Max duration of a reading step while no row writes: a cancel, a stop or a new row takes effect between steps. */
const maxStepMs = 500;
/** Prompt tokens per step if no row is writing. */
const idleStepTokens = 512;

/**
 * Returns the token budget of a step.
 *
 * @param present rows of the step, of one shape: `read` or `write`.
 * @param all all rows of the pipeline.
 */
export function stepBudget(present: NonEmpty<TextRow>, all: Iterable<TextRow>, stepTokens: number): number {
  if (present[0].shapeKey === 'write') return Infinity;
  return hasWriters(all) ? stepTokens : idleStepTokens;
}

/** Returns true if there are writing rows, which wait for each reading step. */
function hasWriters(all: Iterable<TextRow>): boolean {
  return [...all].some(({ shapeKey, isDone }) => shapeKey === 'write' && !isDone);
}

/** A row's share of a step. */
interface StepPart<Row> {
  readonly row: Row;
  readonly count: number;
}

/**
 * Divides a step's budget among the first rows that fit; each costs as much as the widest.
 *
 * @param countOf tokens that a row could use in this step; at least 1.
 * @returns at least the first row's share.
 */
export function shareStep<Row>(rows: readonly Row[], budget: number, countOf: (row: Row) => number): StepPart<Row>[] {
  const parts: StepPart<Row>[] = [];
  let width = 0;
  for (const row of rows) {
    const count = countOf(row);
    const wider = Math.max(width, count);
    if (parts.length > 0 && (parts.length + 1) * wider > budget) continue;
    parts.push({ row, count });
    width = wider;
  }
  return parts;
}

/** A row that reads its prompt in chunks. */
export interface ChunkedRow extends TextRow {
  /** Max unread tokens in one chunk. */
  readonly chunk: number;
}

type ModelCallsOptions = Pick<
  TextPipelineOptions,
  'decoder' | 'imageEncoder' | 'component' | 'stepTokens' | 'singlesMatchChunks'
>;

/** Makes the calls of an autoregressive pipeline. Reading calls are limited while other rows write. */
export class ModelCalls<Row extends ChunkedRow> {
  readonly #options: ModelCallsOptions;
  readonly #prefixes: SharedPrefixes;
  readonly #budget: PromptBudget;
  readonly #clock: () => number;
  /** True if the last call of rows that wait for images encoded one. */
  #hasEncoded = false;
  /** An unfinished call of rows that read their prompt. */
  #unfinished: SplitCall<Row> | undefined;

  constructor(options: ModelCallsOptions, prefixes: SharedPrefixes) {
    this.#options = options;
    this.#prefixes = prefixes;
    this.#budget = new PromptBudget(options.stepTokens);
    this.#clock = clockOf(options.component.device);
  }

  /**
   * Runs one model call for as many rows as fit, or part of it if writing rows wait.
   *
   * @param all all rows of the pipeline.
   * @returns the rows of a completed call, with logits for those that have no unread tokens left.
   */
  async run(rows: readonly Row[], all: Iterable<Row>): Promise<{ row: Row; logits: Float32Array }[]> {
    const isReading = rows.some(({ shapeKey }) => shapeKey === 'read');
    const hasWaitingRows = isReading && hasWriters(all);
    const unfinished = isReading ? this.#unfinished : undefined;
    const canContinue = unfinished?.rows.every((row) => rows.includes(row)) === true;
    if (!canContinue) await unfinished?.drop();
    const budget = !isReading ? Infinity : hasWaitingRows ? this.#budget.tokens : idleStepTokens;
    const call = canContinue ? unfinished : this.#startCall(this.#prefixes.readyRows(rows, all), budget);
    // Forget the call before running it: a failed one must not be continued.
    if (isReading) this.#unfinished = undefined;
    const logits = await call.advance(hasWaitingRows ? this.#budget.readMs : isReading ? maxStepMs : Infinity);
    if (logits === undefined) {
      this.#unfinished = call;
      return [];
    }
    if (!isReading) this.#budget.recordWriting(call.takenMs);
    // Adapt only to calls near the budget: smaller ones do not show how long a full one takes.
    else if (hasWaitingRows && 2 * call.tokens > this.#budget.tokens) this.#budget.recordReading(call.partMs);
    // A call that encodes an image has no logits.
    return logits.length === 0 ? [] : pairUp(call.rows, logits).map(([row, of]) => ({ row, logits: of }));
  }

  /** Releases what an unfinished call holds for a row that leaves. */
  release(row: Row): void {
    if (this.#unfinished?.rows.includes(row) !== true) return;
    void this.#unfinished.drop();
    this.#unfinished = undefined;
  }

  /** Starts a call that reads prompts, or encodes an image; in turns, so that prompts need not wait for all images. */
  #startCall(rows: readonly Row[], budget: number): SplitCall<Row> {
    const { imageEncoder } = this.#options;
    const waiting = rows.find(isMissingImage);
    if (imageEncoder === undefined || waiting?.images === undefined) return this.#startReading(rows, budget);
    const ready = rows.filter((row) => !isMissingImage(row));
    this.#hasEncoded = !this.#hasEncoded || ready.length === 0;
    if (!this.#hasEncoded) return this.#startReading(ready, budget);
    const parts = waiting.images.encodeNext(waiting.cache.length, imageEncoder);
    return new SplitCall([waiting], parts, { tokens: 0, clock: this.#clock });
  }

  #startReading(rows: readonly Row[], budget: number): SplitCall<Row> {
    const parts = shareStep(rows, budget, (row) => this.#countOf(row, budget));
    const reads = parts.map(({ row, count }) => {
      const logitsFrom = count === row.unread ? count - 1 : count;
      const { cache, images } = row;
      const embeddings = images?.embeddingsOf(cache.length, cache.length + count);
      return { cache, ids: unreadIds(row, count), embeddings, keeps: true, logitsFrom };
    });
    const shared = parts.map(({ row }) => row);
    const tokens = reads.length * reads.reduce((max, { ids }) => Math.max(max, ids.length), 0);
    return new SplitCall(shared, this.#options.decoder.runByParts(reads), { tokens, clock: this.#clock });
  }

  #countOf({ chunk }: Row, budget: number): number {
    const count = Math.min(chunk, budget);
    // Leave no single prompt token over if it would round differently.
    return chunk - count === 1 && count > 2 && !this.#options.singlesMatchChunks ? count - 1 : count;
  }
}

function isMissingImage({ images, cache }: TextRow): boolean {
  return images?.isMissingFrom(cache.length) === true;
}

function unreadIds(row: TextRow, count: number): readonly number[] {
  const { cache, unread, written, ids } = row;
  if (unread === 1 && written.tokens.length > 0) return written.tokens.slice(-1);
  return ids.slice(cache.length, cache.length + count);
}

/** Min budget: below it the call itself takes longer than its tokens. */
const minTokens = 8;

/**
 * Adapts the number of prompt tokens per step so that reading delays writing rows by no more than one of their own
 * steps, on any machine and with any number of rows.
 */
export class PromptBudget {
  readonly #maxTokens: number;
  #tokens: number;
  #writeMs = Infinity;

  /** @param maxTokens upper limit of the budget. */
  constructor(maxTokens: number) {
    this.#maxTokens = maxTokens;
    this.#tokens = Math.min(maxTokens, 2 * minTokens);
  }

  /** Token budget of the next reading call. */
  get tokens(): number {
    return this.#tokens;
  }

  /** Time limit of a reading step: less than a writing step, since durations of parts vary. */
  get readMs(): number {
    return 0.75 * this.#writeMs;
  }

  /** Records the duration of a writing step. */
  recordWriting(ms: number): void {
    // Limit the increase: a much slower step was delayed by something else.
    this.#writeMs = Math.min(ms, 1.05 * this.#writeMs);
  }

  /** Records the duration of a reading call near its budget, or of one of its parts. */
  recordReading(ms: number): void {
    const next = ms > this.#writeMs ? this.#tokens / 2 : this.#tokens + minTokens;
    this.#tokens = Math.min(this.#maxTokens, Math.max(minTokens, Math.floor(next)));
  }
}

/**
 * Returns a clock that measures a device's work: CPU time, which excludes other processes, or wall-clock time for other
 * devices.
 *
 * @param device as a component names it.
 */
function clockOf(device: string): () => number {
  if (device !== 'cpu') return () => performance.now();
  return () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
}

/** A model call for some rows that may be spread over several steps; other rows write between its parts. */
export class SplitCall<Row> {
  readonly rows: readonly Row[];
  /** Number of tokens, with each row as wide as the widest. */
  readonly tokens: number;
  readonly #parts: AsyncGenerator<void, readonly Float32Array[]>;
  #count = 0;
  #takenMs = 0;

  readonly #clock: () => number;

  /**
   * @param parts returns the logits of each row; none if the call computes no logits.
   * @param options `tokens` as above; `clock` in milliseconds.
   */
  constructor(
    rows: readonly Row[],
    parts: AsyncGenerator<void, readonly Float32Array[]>,
    { tokens, clock }: { tokens: number; clock: () => number },
  ) {
    this.rows = rows;
    this.tokens = tokens;
    this.#clock = clock;
    this.#parts = parts;
  }

  /** Average duration of a part; the longest may have been delayed by something else. */
  get partMs(): number {
    return this.#takenMs / this.#count;
  }

  /** Total duration of the parts so far. */
  get takenMs(): number {
    return this.#takenMs;
  }

  /** Abandons the rest of the call and releases its resources. */
  async drop(): Promise<void> {
    await this.#parts.return([]);
  }

  /**
   * Runs at least one part, and more while they are expected to stay within the limit.
   *
   * @returns the rows' logits once the call is complete.
   */
  async advance(limitMs: number): Promise<readonly Float32Array[] | undefined> {
    for (let leftMs = limitMs; ;) {
      const startedAtMs = this.#clock();
      const part = await this.#parts.next();
      const partMs = this.#clock() - startedAtMs;
      this.#count += 1;
      this.#takenMs += partMs;
      if (part.done === true) return part.value;
      leftMs -= partMs;
      if (leftMs < partMs) return undefined;
    }
  }
}

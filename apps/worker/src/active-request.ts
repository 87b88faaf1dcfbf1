/**
 * One leased request in a worker: turns what the engine says about it into fenced writes, in order. Encoding is
 * asynchronous, so everything goes through one chain per request; only encoding is waited for, not Redis' answers, until
 * the end: that comes when all before it is stored. While Redis is away what was said waits here; it is bounded, since no
 * new work comes, and given up at the request's deadline.
 */
import type { RequestEnvelope, RequestError, RowOutput } from '@darkroom/core';
import type { CheckpointEvent, ExecutorEvent, OutputEvent, ProgressEvent } from '@darkroom/executor';
import { inSpan } from '@darkroom/service';
import {
  appendProgress,
  type Delivery,
  type FinishOutcome,
  finishRequest,
  giveBackRequest,
  type LeasedRequest,
  releaseRows,
  type RequeueOutcome,
  type StoreConnection,
  writeCheckpoint,
  type WriteOutcome,
  writeOutput,
} from '@darkroom/store';
import { encodeCheckpoint } from './checkpoint-bytes.ts';
import { OrderedWrites } from './ordered-writes.ts';
import { type DropReason, isLoss } from './step-meter.ts';

/** From what the engine gives out to what clients get. */
export interface OutputEncoder {
  encodeOutput(input: unknown, output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
  encodePreview(output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
}

/** What the engine says of one request. */
export type EngineRequestEvent = Exclude<ExecutorEvent, { type: 'stats' | 'engine-lost' }>;

/** How a request leaves its engine. */
export type EngineEnding = { state: 'succeeded' | 'canceled' } | { state: 'failed'; error: RequestError };

export interface ActiveRequestOptions {
  store: StoreConnection;
  workerId: string;
  leased: LeasedRequest;
  encoder: OutputEncoder;
  chunkBytes: number;
  /** Rows that an earlier delivery has finished. */
  finishedRows: number;
  /** The engine is to drop the request: it was canceled, or is not ours any more. */
  onRefused: (outcome: Exclude<WriteOutcome, 'written'>) => void;
  /** A write failed for another reason than the fence. */
  onError: (error: unknown) => void;
}

export class ActiveRequest {
  readonly envelope: RequestEnvelope;
  readonly delivery: Delivery;
  /** Why the engine has been told to take it out. */
  dropped: DropReason | undefined;
  /** Leased to this worker once more, after this delivery was lost: nothing of it counts any more. */
  isSuperseded = false;
  /** Settles when its end is stored; undefined while the engine has it. */
  ending: Promise<void> | undefined;
  readonly #options: ActiveRequestOptions;
  readonly #startedAtMs = Date.now();
  readonly #done = new Map<number, number>();
  /** Of each row under way, how much is done: 0 to 1. */
  readonly #shares = new Map<number, number>();
  #chain: Promise<unknown> = Promise.resolve();
  readonly #writes: OrderedWrites;

  constructor(options: ActiveRequestOptions) {
    this.#options = options;
    this.envelope = options.leased.envelope;
    this.delivery = { id: this.envelope.id, token: options.leased.token };
    this.#writes = new OrderedWrites(options.store, this.envelope.deadlineMs);
  }

  /** Cost of one of its rows. */
  get rowCost(): number {
    return this.envelope.cost / this.envelope.outputs;
  }

  /** Cost of the steps that are left. */
  get remainingCost(): number {
    let done = this.#options.finishedRows;
    for (const share of this.#shares.values()) done += share;
    return this.rowCost * Math.max(0, this.envelope.outputs - done);
  }

  /** Writes what the engine says; returns how it ended, when that is what was said. */
  observe(event: EngineRequestEvent): EngineEnding | undefined {
    if (event.type === 'progress') this.#progress(event);
    else if (event.type === 'row-releasing') this.#rowReleasing();
    else if (event.type === 'output') this.#output(event);
    else if (event.type === 'checkpoint') this.#checkpoint(event);
    // No model writes text yet.
    else if (event.type !== 'delta' && event.type !== 'snapshot') return endingOf(event);
    return undefined;
  }

  #progress({ index, done, total, preview }: ProgressEvent): void {
    const { store, encoder, finishedRows } = this.#options;
    this.#done.set(index, done);
    this.#shares.set(index, total === undefined ? 0 : done / total);
    let requestDone = finishedRows * (total ?? 0);
    for (const doneOfRow of this.#done.values()) requestDone += doneOfRow;
    const requestTotal = this.envelope.outputs * (total ?? 0);
    const timestampMs = Date.now();
    this.#enqueue(async () => {
      const encoded = preview === undefined ? undefined : await encoder.encodePreview(preview);
      const progress = { index, done, total, requestDone, requestTotal, timestampMs };
      const written = encoded ? { ...progress, preview: encoded } : progress;
      this.#write(() => appendProgress(store, this.envelope.model, this.delivery, written));
    });
  }

  /** A row in its last step: its place can be promised to somebody else. An exclusive lease keeps all until its end. */
  #rowReleasing(): void {
    const { store, workerId, leased, onError } = this.#options;
    if (leased.slots !== this.envelope.slots) return;
    releaseRows(store, this.envelope.model, workerId, this.delivery, 1).catch(onError);
  }

  #output({ index, output }: OutputEvent): void {
    const { store, encoder, chunkBytes } = this.#options;
    this.#enqueue(async () => {
      const { data, contentType } = await encoder.encodeOutput(this.envelope.input, output);
      const written = { index, contentType, data, facts: output.facts, chunkBytes, timestampMs: Date.now() };
      this.#write(() => writeOutput(store, this.envelope.model, this.delivery, written));
    });
  }

  #checkpoint({ index, checkpoint }: CheckpointEvent): void {
    const { store } = this.#options;
    this.#enqueue(async () => {
      const bytes = encodeCheckpoint(checkpoint);
      this.#write(() => writeCheckpoint(store, this.envelope.model, this.delivery, index, bytes));
    });
  }

  /** Ends the request after everything written before. `canceled` of one that has ended otherwise just frees its rows. */
  finish(finish: EngineEnding): Promise<FinishOutcome> {
    return this.#inSpan(finish.state, () => this.#finish(finish));
  }

  /** Hands it back, behind all that was said: because the worker `stops`, or because its engine `failed` under it. */
  giveBack(reason: 'stops' | 'failed'): Promise<RequeueOutcome> {
    return this.#inSpan(`given back: ${reason}`, async () => {
      await this.#chain;
      const { store, workerId } = this.#options;
      return this.#writes.send(() => giveBackRequest(store, this.envelope.model, workerId, this.delivery, reason));
    });
  }

  /** Its time in this worker is a span, and what ends it is part of that. */
  #inSpan<Result>(outcome: string, work: () => Promise<Result>): Promise<Result> {
    const { trace: parent, id, outputs } = this.envelope;
    const attributes = { 'darkroom.request_id': id, 'darkroom.outputs': outputs, 'darkroom.outcome': outcome };
    return inSpan('run', { kind: 'consumer', parent, startedAtMs: this.#startedAtMs, attributes }, work);
  }

  async #finish(finish: EngineEnding): Promise<FinishOutcome> {
    await this.#chain;
    // Sent again to another server of a Cluster, what was said before could come after.
    await this.#writes.answered();
    const { store, workerId } = this.#options;
    const { model, outputs } = this.envelope;
    if (finish.state === 'canceled' && this.dropped !== undefined && isLoss(this.dropped)) {
      // Nobody has canceled it, and it may be ours again by now: after a failover, that is.
      await this.#writes.send(() => releaseRows(store, model, workerId, this.delivery, 'all'));
      return 'lost';
    }
    const ending = finish.state === 'succeeded' ? ({ state: 'succeeded', outputs } as const) : finish;
    return this.#writes.send(() => finishRequest(store, model, workerId, this.delivery, ending));
  }

  #enqueue(step: () => Promise<void>): void {
    this.#chain = this.#chain.then(step).catch(this.#options.onError);
  }

  #write(write: () => Promise<WriteOutcome>): void {
    this.#writes
      .send(write)
      .then((outcome) => {
        if (outcome !== 'written') this.#options.onRefused(outcome);
      })
      .catch(this.#options.onError);
  }
}

function endingOf(event: Extract<EngineRequestEvent, { type: `request-${string}` }>): EngineEnding {
  if (event.type === 'request-failed') return { state: 'failed', error: { code: event.code, message: event.message } };
  return { state: event.type === 'request-done' ? 'succeeded' : 'canceled' };
}

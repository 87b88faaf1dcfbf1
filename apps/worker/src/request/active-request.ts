/**
 * One leased request in a worker: turns the engine's events into fenced writes, in order. Encoding is asynchronous, so
 * all writes of a request pass through one promise chain, which waits for the encoding, not for Redis' answers.
 */
import {
  type Failure,
  failureOf,
  type OutputProgress,
  type Progress,
  type RequestEnvelope,
  type RowOutput,
  itemAt,
} from '@darkroom/core';
import type { EventOf, ExecutorEvent } from '@darkroom/executor';
import { inSpan } from '@darkroom/service';
import { type Delivery, type LeasedRequest, type RequestEnd, splitOutput, type WriteOutcome } from '@darkroom/store';
import { type DropReason, isLoss } from './drop-reason.ts';
import { encodeCheckpoint, type ResumeState } from './resume-state.ts';
import type { BytesKeeper } from './bytes-keeper.ts';
import type { OutputEncoder } from './output-encoder.ts';
import { OutputTextLog, type TextNotes } from './output-text.ts';
import { type FlushTimer, UnreadProgress } from './unread-progress.ts';
import type { WriteBody, WriteQueue } from './write-queue.ts';

export interface ActiveRequestOptions {
  writes: WriteQueue;
  bytes: BytesKeeper;
  encoder: OutputEncoder;
  flushTimer: FlushTimer;
  /** Returns the digest of the model's files. */
  modelDigest: () => string;
  /** Called when a refused write shows that the engine must drop the request: canceled, or no longer ours. */
  onRefused: (request: ActiveRequest, outcome: DropReason) => void;
  /** Called when a write fails for a reason other than the fencing token. */
  onError: (request: ActiveRequest, error: unknown) => void;
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const incomplete = { code: 'internal', message: 'An output could not be encoded or stored.' };

export class ActiveRequest {
  readonly envelope: RequestEnvelope;
  readonly delivery: Delivery;
  /** Number of outputs that an earlier delivery has finished. */
  finishedOutputs = 0;
  /** Why the engine was told to drop it. */
  dropped: DropReason | undefined;
  readonly progress: UnreadProgress;
  /** Settles when the request's end is stored; undefined while the engine has the request. */
  ending: Promise<void> | undefined;
  /** Aborted when outputs are no longer wanted from this worker: pending reads and writes then stop. */
  readonly discarding = new AbortController();
  readonly #leased: LeasedRequest;
  readonly #options: ActiveRequestOptions;
  readonly #startedAtMs = Date.now();
  /** Deadline of the request by `performance.now()`. */
  readonly #deadlineMs: number;
  /** Progress of each output that has reported any, in the kind's units; `total` is 0 while unknown. */
  readonly #done = new Map<number, { done: number; total: number; isFinished: boolean }>();
  readonly #texts = new Map<number, OutputTextLog>();
  /** An output is missing because its storage was not waited for. */
  #isOutputMissing = false;
  #chain: Promise<unknown> = Promise.resolve();

  constructor(leased: LeasedRequest, options: ActiveRequestOptions) {
    this.#leased = leased;
    this.#options = options;
    this.envelope = leased.envelope;
    this.delivery = { id: leased.envelope.id, token: leased.token };
    this.#deadlineMs = performance.now() + leased.remainingMs;
    const hasProgressWebhook = leased.envelope.webhook?.events.includes('progress') === true;
    this.progress = new UnreadProgress((write) => this.#write({ type: 'progress', ...write }), options.flushTimer);
    this.progress.follow(hasProgressWebhook ? Infinity : (leased.followedMs ?? 0));
  }

  /** Cost of one output. */
  get rowCost(): number {
    return this.envelope.cost / this.envelope.outputs;
  }

  get remainingCost(): number {
    const shares = [...this.#done.values()].map(({ done, total, isFinished }) => {
      if (isFinished) return 1;
      return total > 0 ? Math.min(1, done / total) : 0;
    });
    const finished = shares.reduce((sum, share) => sum + share, this.finishedOutputs);
    return this.rowCost * Math.max(0, this.envelope.outputs - finished);
  }

  /** Returns an output's length as a fraction of its maximum; undefined while the maximum is unknown. */
  shareOf(index: number): number | undefined {
    const { done, total } = this.#done.get(index) ?? { done: 0, total: 0 };
    return total > 0 ? Math.min(1, done / total) : undefined;
  }

  /** Restores the state of outputs that an earlier delivery began. */
  resume({ indexes, checkpoints, texts }: ResumeState): void {
    this.finishedOutputs = this.envelope.outputs - indexes.length;
    for (const [index, { done }] of checkpoints) this.#advance(index, { done });
    for (const [index, events] of texts) {
      this.#texts.set(index, new OutputTextLog(events));
      // A checkpoint may be older than the text published after it.
      const done = events.flatMap((event) => ('done' in event ? (event.done ?? []) : [])).at(-1);
      if (done !== undefined && indexes.includes(index)) this.#advance(index, { done });
    }
  }

  /** Returns how far an event advances its output beyond earlier events, in the kind's units and in cost. */
  advanceOf({ index, done, total }: OutputProgress): { units: number; cost: number } {
    const before = this.#done.get(index);
    const units = Math.max(0, done - (before?.done ?? 0));
    const maximum = total ?? before?.total ?? 0;
    return { units, cost: maximum > 0 ? (this.rowCost * units) / maximum : 0 };
  }

  /** Publishes that the worker first loads the model, for which it may wait up to `waitMs`. */
  writeLoading(waitMs: number): void {
    this.#enqueue(() => this.#write({ type: 'loading', waitMs }));
  }

  /** Writes an engine event. Returns how the request ended if the event says that it did. */
  observe(event: Exclude<ExecutorEvent, { type: 'stats' | 'engine-lost' }>): RequestEnd | undefined {
    switch (event.type) {
      case 'progress':
        return this.#advanced(event);
      case 'delta':
      case 'snapshot':
        return this.#text(event);
      case 'row-releasing':
        return this.#rowReleasing();
      case 'output':
        return this.#output(event);
      case 'checkpoint':
        return this.#checkpoint(event);
      case 'request-failed':
        return toFailedEnd(event);
      case 'request-done':
        return { state: 'succeeded', outputs: this.envelope.outputs };
      case 'request-canceled':
        return { state: 'canceled' };
      case 'request-lost':
        // Not an end: the worker requeues it.
        return undefined;
    }
  }

  #advanced({ index, done, total, preview }: EventOf<'progress'>): undefined {
    const of = this.#advance(index, { done, total });
    const progress = { index, done, ...(total !== undefined && { total }) };
    const storing = preview && this.#putPreview(preview, `${index}.${done}`);
    // A rejection is handled in the chain below.
    storing?.catch(() => {});
    this.#enqueue(async () => {
      const stored = await storing;
      if (stored === undefined) return this.progress.add({ progress, of, isOfText: this.#texts.has(index) });
      this.progress.drop(index);
      this.#write({ type: 'preview', progress, of, ...stored });
    });
  }

  async #putPreview(preview: RowOutput, name: string): Promise<{ data: Uint8Array; contentType: string } | undefined> {
    const { encoder, bytes } = this.#options;
    const encoded = await encoder.encodePreview(preview, this.envelope);
    const stored = encoded && (await bytes.storeWork(this.delivery, { kind: 'preview', name, data: encoded.data }));
    return stored && { data: stored, contentType: encoded.contentType };
  }

  /** Records the progress of an output and returns the progress of all. */
  #advance(index: number, reported: { done: number; total?: number | undefined }): Progress {
    const before = this.#done.get(index);
    // A text chunk may lag behind, because the engine holds back its last characters.
    const done = Math.max(reported.done, before?.done ?? 0);
    const total = reported.total ?? before?.total ?? 0;
    this.#done.set(index, { done, total, isFinished: false });
    const doneOfAll = [...this.#done.values()].reduce((sum, output) => sum + output.done, this.finishedOutputs * total);
    return { done: doneOfAll, ...(total > 0 && { total: this.envelope.outputs * total }) };
  }

  #text({ type, index, offset, text, done, facts }: EventOf<'delta' | 'snapshot'>): undefined {
    const log = this.#texts.get(index) ?? new OutputTextLog();
    this.#texts.set(index, log);
    const chunk = { offset, text, ...(done !== undefined && { done }), ...(facts && { facts }) };
    const notes = log.add({ type, ...chunk });
    const of = done === undefined ? undefined : this.#advance(index, { done });
    if (notes.isRepeated) return;
    this.#enqueue(() => {
      this.progress.flushOutput(index);
      this.#writeNotes(index, notes);
      this.#write({ type, index, ...chunk, ...(of && { of }) });
    });
  }

  #writeNotes(index: number, { differsFrom, whole }: TextNotes): void {
    if (differsFrom !== undefined) this.#write({ type: 'reset', index, offset: differsFrom });
    if (whole !== undefined) this.#write({ type: 'snapshot', isWhole: true, index, ...whole });
  }

  /** Releases the slots of a row in its last step; an exclusive lease keeps all its slots until the end. */
  #rowReleasing(): undefined {
    const { slots, outputs } = this.envelope;
    // While the blob store is unavailable, outputs keep their slots so that waiting outputs stay bounded.
    if (this.#options.bytes.isUnavailable) return;
    if (this.#leased.slots === slots) this.#write({ type: 'release', slots: Math.floor(slots / outputs) });
  }

  #output({ index, output }: EventOf<'output'>): undefined {
    const { encoder, bytes } = this.#options;
    const notes = this.#texts.get(index)?.finish(utf8.decode(output.data)) ?? {};
    const { done = 0, total = 0 } = this.#done.get(index) ?? {};
    this.#done.set(index, { done, total, isFinished: true });
    this.#enqueue(async () => {
      this.#writeNotes(index, notes);
      const { data, contentType } = await encoder.encode(output, this.envelope);
      const keep = { index, data, contentType, untilMs: this.#deadlineMs, signal: this.discarding.signal };
      const stored = await bytes.storeOutput(this.delivery, keep);
      if (stored === undefined) return void (this.#isOutputMissing = true);
      this.progress.flushOutput(index);
      const { facts } = output;
      for (const write of splitOutput(this.delivery, { index, contentType, data, stored, facts })) this.#write(write);
    });
  }

  #checkpoint({ index, checkpoint }: EventOf<'checkpoint'>): undefined {
    const { done } = checkpoint;
    const data = encodeCheckpoint(checkpoint);
    const origin = this.#options.modelDigest();
    const isOfText = this.#texts.has(index);
    const name = `${index}.${done}`;
    const storing = isOfText ? data : this.#options.bytes.storeWork(this.delivery, { kind: 'checkpoint', name, data });
    this.#enqueue(async () => {
      const stored = await storing;
      this.progress.flushOutput(index);
      if (stored !== undefined) this.#write({ type: 'checkpoint', index, done, data: stored, origin, isOfText });
    });
  }

  /** Ends the request after all earlier writes. A request whose lease was lost is only requeued. */
  finish(end: RequestEnd): Promise<WriteOutcome> {
    // The client has not canceled it. After a failover the lease may be ours again, so requeue it to be resumed.
    if (end.state === 'canceled' && this.dropped !== undefined && isLoss(this.dropped)) return this.requeue();
    return this.#inSpan(end.state, async () => {
      await this.#chain;
      if (this.#isOutputMissing && end.state === 'succeeded') return this.#push(this.#endWithMissingOutput());
      const outcome = await this.#push({ type: 'end', end });
      // `written`: the answer to the end was lost; the end may or may not have been stored.
      if (outcome !== 'incomplete' && outcome !== 'written') return outcome;
      return this.#push({ type: 'end', end: { state: 'failed', error: incomplete } });
    });
  }

  /** Returns the end of a request with a missing output: canceled, or requeued to be resumed. */
  #endWithMissingOutput(): WriteBody {
    if (this.dropped === undefined || isLoss(this.dropped)) return { type: 'give-back', reason: 'worker_stopped' };
    return { type: 'end', end: { state: 'canceled' } };
  }

  /** Requeues the request after all earlier writes. A failure counts as an attempt. */
  requeue(failure?: Failure): Promise<WriteOutcome> {
    const reason = failure === undefined ? 'worker_stopped' : 'engine_failed';
    return this.#inSpan(`requeued: ${reason}`, () => this.#push({ type: 'give-back', reason, failure }));
  }

  /** Runs the final write in a span that covers the request's time in this worker. */
  #inSpan<Result>(outcome: string, work: () => Promise<Result>): Promise<Result> {
    const { trace: parent, id, outputs } = this.envelope;
    const attributes = { 'darkroom.request_id': id, 'darkroom.outputs': outputs, 'darkroom.outcome': outcome };
    return inSpan('run', { kind: 'consumer', parent, startedAtMs: this.#startedAtMs, attributes }, work);
  }

  #enqueue(step: () => Promise<void> | void): undefined {
    this.#chain = this.#chain.then(step).catch((error: unknown) => this.#options.onError(this, error));
  }

  /** Writes after all pending encodings. */
  async #push(write: WriteBody): Promise<WriteOutcome> {
    await this.#chain;
    this.progress.flushAll();
    return this.#send(write);
  }

  #write(write: WriteBody): void {
    const { onRefused, onError } = this.#options;
    this.#send(write)
      .then((outcome) => {
        if (outcome === 'canceling' || outcome === 'lost' || outcome === 'ended') onRefused(this, outcome);
      })
      .catch((error: unknown) => onError(this, error));
  }

  #send(write: WriteBody): Promise<WriteOutcome> {
    return this.#options.writes.push({ ...write, delivery: this.delivery }, this.#deadlineMs);
  }
}

/** Builds the failed end. Operators also get the cause of an unexpected error. */
function toFailedEnd({ code, message, cause }: EventOf<'request-failed'>): RequestEnd {
  const known = code === 'out_of_memory' ? code : undefined;
  const failure = cause === undefined ? undefined : failureOf(itemAt(cause.split('\n', 1), 0), known, cause);
  return { state: 'failed', error: { code, message }, failure };
}

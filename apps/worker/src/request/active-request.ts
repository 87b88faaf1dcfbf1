/**
 * One leased request in a worker: turns what the engine says about it into fenced writes, in order. Encoding is
 * asynchronous, so everything goes through one chain per request; only encoding is waited for, not Redis' answers.
 */
import type { OutputProgress, Progress, RequestEnvelope, RowOutput } from '@darkroom/core';
import type { EventOf, ExecutorEvent } from '@darkroom/executor';
import { inSpan } from '@darkroom/service';
import {
  type Delivery,
  type LeasedRequest,
  type RequestEnd,
  type RequestWrite,
  splitOutput,
  type WriteOutcome,
} from '@darkroom/store';
import { type DropReason, isLoss } from '../meters/step-meter.ts';
import { encodeCheckpoint, type LeftToDo } from './left-to-do.ts';
import type { BytesKeeper } from './bytes-keeper.ts';
import type { OutputEncoder } from './output-encoder.ts';
import { OutputTextLog, type TextNotes } from './output-text.ts';
import { UnreadProgress } from './unread-progress.ts';
import type { WriteBody, WriteQueue } from './write-queue.ts';

export type GiveBackReason = Extract<RequestWrite, { type: 'give-back' }>['reason'];

export interface ActiveRequestOptions {
  writes: WriteQueue;
  bytes: BytesKeeper;
  encoder: OutputEncoder;
  chunkBytes: number;
  /** What rows are made with. */
  origin: () => string;
  /** The engine is to drop the request: it was canceled, or is not ours any more. */
  onRefused: (request: ActiveRequest, outcome: DropReason) => void;
  /** A write failed for another reason than the fence. */
  onError: (request: ActiveRequest, error: unknown) => void;
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const incomplete = { code: 'internal', message: 'An output could not be encoded or stored.' };

export class ActiveRequest {
  readonly envelope: RequestEnvelope;
  readonly delivery: Delivery;
  /** Outputs that an earlier delivery has finished. */
  finishedOutputs = 0;
  /** Why the engine has been told to take it out. */
  dropped: DropReason | undefined;
  readonly progress: UnreadProgress;
  /** Settles when its end is stored; undefined while the engine has it. */
  ending: Promise<void> | undefined;
  /** Aborted when nobody wants its outputs from here any more: nothing is waited for. */
  readonly leaving = new AbortController();
  readonly #leased: LeasedRequest;
  readonly #options: ActiveRequestOptions;
  readonly #startedAtMs = Date.now();
  /** When nobody waits for it any more, by `performance.now()`. */
  readonly #untilMs: number;
  /** How far each output is that has said so, in the kind's units; `total` is 0 while nobody knows it. */
  readonly #done = new Map<number, { done: number; total: number; isFinished: boolean }>();
  readonly #texts = new Map<number, OutputTextLog>();
  /** An output is not there, since it was not waited for. */
  #isShort = false;
  #chain: Promise<unknown> = Promise.resolve();

  constructor(leased: LeasedRequest, options: ActiveRequestOptions) {
    this.#leased = leased;
    this.#options = options;
    this.envelope = leased.envelope;
    this.delivery = { id: leased.envelope.id, token: leased.token };
    this.#untilMs = performance.now() + leased.remainingMs;
    const isTold = leased.envelope.webhook?.events.includes('progress') === true;
    this.progress = new UnreadProgress((write) => this.#write({ type: 'progress', ...write }));
    this.progress.follow(isTold ? Infinity : (leased.followedMs ?? 0));
  }

  /** Cost of one of its outputs. */
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

  /** How far an output is, of as far as it might come; undefined while nobody knows that. */
  shareOf(index: number): number | undefined {
    const { done, total } = this.#done.get(index) ?? { done: 0, total: 0 };
    return total > 0 ? Math.min(1, done / total) : undefined;
  }

  /** Where its outputs go on that an earlier delivery began. */
  resume({ indexes, checkpoints, said }: LeftToDo): void {
    this.finishedOutputs = this.envelope.outputs - indexes.length;
    for (const [index, { done }] of checkpoints) this.#advance(index, { done });
    for (const [index, events] of said) {
      this.#texts.set(index, new OutputTextLog(events));
      // A checkpoint is older than what was said after it.
      const done = events.flatMap((event) => ('done' in event ? (event.done ?? []) : [])).at(-1);
      if (done !== undefined && indexes.includes(index)) this.#advance(index, { done });
    }
  }

  /** By how much what an engine says is further than what it said before, of one output: in the kind's units and in cost. */
  advanceOf({ index, done, total }: OutputProgress): { units: number; cost: number } {
    const before = this.#done.get(index);
    const units = Math.max(0, done - (before?.done ?? 0));
    const most = total ?? before?.total ?? 0;
    return { units, cost: most > 0 ? (this.rowCost * units) / most : 0 };
  }

  /** Its worker slept, and loads the model first, for which it may have to wait so long. */
  sayLoading(waitMs: number): void {
    this.#enqueue(() => this.#write({ type: 'loading', waitMs }));
  }

  /** Writes what the engine says; returns how it ended, when that is what was said. */
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
        return { state: 'failed', error: { code: event.code, message: event.message } };
      case 'request-done':
        return { state: 'succeeded', outputs: this.envelope.outputs };
      case 'request-canceled':
        return { state: 'canceled' };
      case 'request-lost':
        // It has not ended: it is given back.
        return undefined;
    }
  }

  #advanced({ index, done, total, preview }: EventOf<'progress'>): undefined {
    const of = this.#advance(index, { done, total });
    const progress = { index, done, ...(total !== undefined && { total }) };
    const keeping = preview && this.#keepPreview(preview, `${index}.${done}`);
    // Told when it is its turn.
    keeping?.catch(() => {});
    this.#enqueue(async () => {
      const kept = await keeping;
      if (kept === undefined) return this.progress.add({ progress, of, isOfText: this.#texts.has(index) });
      this.progress.drop(index);
      this.#write({ type: 'preview', progress, of, ...kept });
    });
  }

  async #keepPreview(preview: RowOutput, name: string): Promise<{ data: Uint8Array; contentType: string } | undefined> {
    const { data, contentType } = await this.#options.encoder.encodePreview(preview);
    const held = await this.#options.bytes.keepWork(this.delivery, { kind: 'preview', name, data });
    return held && { data: held, contentType };
  }

  /** Takes note of how far an output is, and says how far all are. */
  #advance(index: number, said: { done: number; total?: number | undefined }): Progress {
    const before = this.#done.get(index);
    // A piece of text may be behind, by what is held back of it.
    const done = Math.max(said.done, before?.done ?? 0);
    const total = said.total ?? before?.total ?? 0;
    this.#done.set(index, { done, total, isFinished: false });
    const doneOfAll = [...this.#done.values()].reduce((sum, output) => sum + output.done, this.finishedOutputs * total);
    return { done: doneOfAll, ...(total > 0 && { total: this.envelope.outputs * total }) };
  }

  #text({ type, index, offset, text, done, facts }: EventOf<'delta' | 'snapshot'>): undefined {
    const log = this.#texts.get(index) ?? new OutputTextLog();
    this.#texts.set(index, log);
    const piece = { offset, text, ...(done !== undefined && { done }), ...(facts && { facts }) };
    const notes = log.add({ type, ...piece });
    const of = done === undefined ? undefined : this.#advance(index, { done });
    if (notes.isRepeated) return;
    this.#enqueue(() => {
      this.progress.sayOf(index);
      this.#writeNotes(index, notes);
      this.#write({ type, index, ...piece, ...(of && { of }) });
    });
  }

  #writeNotes(index: number, { differsFrom, whole }: TextNotes): void {
    if (differsFrom !== undefined) this.#write({ type: 'reset', index, offset: differsFrom });
    if (whole !== undefined) this.#write({ type: 'snapshot', isWhole: true, index, ...whole });
  }

  /** A row in its last step: its place can be promised to somebody else. An exclusive lease keeps all until its end. */
  #rowReleasing(): undefined {
    const { slots, outputs } = this.envelope;
    // Outputs that wait keep their places, so that they do not pile up.
    if (this.#options.bytes.isAway) return;
    if (this.#leased.slots === slots) this.#write({ type: 'release', slots: Math.floor(slots / outputs) });
  }

  #output({ index, output }: EventOf<'output'>): undefined {
    const { encoder, bytes, chunkBytes } = this.#options;
    const notes = this.#texts.get(index)?.endedAs(utf8.decode(output.data)) ?? {};
    const { done = 0, total = 0 } = this.#done.get(index) ?? {};
    this.#done.set(index, { done, total, isFinished: true });
    this.#enqueue(async () => {
      this.#writeNotes(index, notes);
      const { data, contentType } = await encoder.encodeOutput(this.envelope.input, output);
      const keep = { index, data, contentType, untilMs: this.#untilMs, signal: this.leaving.signal };
      const held = await bytes.keepOutput(this.delivery, keep);
      if (held === undefined) return void (this.#isShort = true);
      this.progress.sayOf(index);
      const { facts } = output;
      for (const write of splitOutput(this.delivery, { index, contentType, data, held, facts, chunkBytes }))
        this.#write(write);
    });
  }

  #checkpoint({ index, checkpoint }: EventOf<'checkpoint'>): undefined {
    const { done } = checkpoint;
    const data = encodeCheckpoint(checkpoint);
    const origin = this.#options.origin();
    const isOfText = this.#texts.has(index);
    const name = `${index}.${done}`;
    const keeping = isOfText ? data : this.#options.bytes.keepWork(this.delivery, { kind: 'checkpoint', name, data });
    this.#enqueue(async () => {
      const held = await keeping;
      this.progress.sayOf(index);
      if (held !== undefined) this.#write({ type: 'checkpoint', index, done, data: held, origin, isOfText });
    });
  }

  /** Ends the request after everything written before. One that was lost meanwhile is only let go of. */
  finish(end: RequestEnd): Promise<WriteOutcome> {
    // Nobody has canceled it, and after a failover it may be ours again: then somebody goes on with it.
    if (end.state === 'canceled' && this.dropped !== undefined && isLoss(this.dropped))
      return this.giveBack('worker_stopped');
    return this.#inSpan(end.state, async () => {
      await this.#chain;
      if (this.#isShort && end.state === 'succeeded') return this.#push(this.#endOfShort());
      const outcome = await this.#push({ type: 'end', end });
      // `written`: the answer got lost, and it may have been that.
      if (outcome !== 'incomplete' && outcome !== 'written') return outcome;
      return this.#push({ type: 'end', end: { state: 'failed', error: incomplete } });
    });
  }

  /** Of one with an output that was not waited for: it was canceled, or somebody else goes on with it. */
  #endOfShort(): WriteBody {
    if (this.dropped === undefined || isLoss(this.dropped)) return { type: 'give-back', reason: 'worker_stopped' };
    return { type: 'end', end: { state: 'canceled' } };
  }

  /** Hands it back, behind all that was said. */
  giveBack(reason: GiveBackReason): Promise<WriteOutcome> {
    return this.#inSpan(`given back: ${reason}`, () => this.#push({ type: 'give-back', reason }));
  }

  /** Its time in this worker is a span, and what ends it is part of that. */
  #inSpan<Result>(outcome: string, work: () => Promise<Result>): Promise<Result> {
    const { trace: parent, id, outputs } = this.envelope;
    const attributes = { 'darkroom.request_id': id, 'darkroom.outputs': outputs, 'darkroom.outcome': outcome };
    return inSpan('run', { kind: 'consumer', parent, startedAtMs: this.#startedAtMs, attributes }, work);
  }

  #enqueue(step: () => Promise<void> | void): undefined {
    this.#chain = this.#chain.then(step).catch((error: unknown) => this.#options.onError(this, error));
  }

  /** Behind all that is being encoded. */
  async #push(write: WriteBody): Promise<WriteOutcome> {
    await this.#chain;
    this.progress.sayAll();
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
    return this.#options.writes.push({ ...write, delivery: this.delivery }, this.#untilMs);
  }
}

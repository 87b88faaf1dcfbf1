/**
 * One leased request in a worker: turns what the engine says about it into fenced writes, in order. Encoding is
 * asynchronous, so everything goes through one chain per request; only encoding is waited for, not Redis' answers.
 */
import type { RequestEnvelope, RequestError, RowOutput } from '@darkroom/core';
import type {
  CheckpointEvent,
  DeltaEvent,
  ExecutorEvent,
  OutputEvent,
  ProgressEvent,
  SnapshotEvent,
} from '@darkroom/executor';
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
import { encodeCheckpoint } from './checkpoint-bytes.ts';
import type { LeftToDo } from './left-to-do.ts';
import { OutputTextLog } from './output-text.ts';
import type { WriteQueue } from './write-queue.ts';

/** From what the engine gives out to what clients get. */
export interface OutputEncoder {
  encodeOutput(input: unknown, output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
  encodePreview(output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
}

/** What the engine says of one request. */
export type EngineRequestEvent = Exclude<ExecutorEvent, { type: 'stats' | 'engine-lost' }>;

/** How a request leaves its engine. */
export type EngineEnding = { state: 'succeeded' | 'canceled' } | { state: 'failed'; error: RequestError };

/** What a write was told that does not concern the request any more, or is to be dropped. */
export type Refusal = Extract<WriteOutcome, 'canceling' | 'lost' | 'ended'>;

export interface ActiveRequestOptions {
  writes: WriteQueue;
  leased: LeasedRequest;
  encoder: OutputEncoder;
  chunkBytes: number;
  /** The engine is to drop the request: it was canceled, or is not ours any more. */
  onRefused: (outcome: Refusal) => void;
  /** A write failed for another reason than the fence. */
  onError: (error: unknown) => void;
}

type WriteBody = RequestWrite extends infer Write
  ? Write extends RequestWrite
    ? Omit<Write, 'delivery'>
    : never
  : never;

const incomplete = { code: 'internal', message: 'An output could not be encoded or stored.' };

export class ActiveRequest {
  readonly envelope: RequestEnvelope;
  readonly delivery: Delivery;
  /** Outputs that an earlier delivery has finished. */
  finishedOutputs = 0;
  /** Why the engine has been told to take it out. */
  dropped: DropReason | undefined;
  /** Settles when its end is stored; undefined while the engine has it. */
  ending: Promise<void> | undefined;
  readonly #options: ActiveRequestOptions;
  readonly #startedAtMs = Date.now();
  /** When nobody waits for it any more, by `performance.now()`. */
  readonly #untilMs: number;
  /** Of each output under way, how much is done, in the kind's units and from 0 to 1. */
  readonly #done = new Map<number, { done: number; share: number }>();
  readonly #texts = new Map<number, OutputTextLog>();
  #chain: Promise<unknown> = Promise.resolve();

  constructor(options: ActiveRequestOptions) {
    this.#options = options;
    this.envelope = options.leased.envelope;
    this.delivery = { id: this.envelope.id, token: options.leased.token };
    this.#untilMs = performance.now() + options.leased.remainingMs;
  }

  /** What earlier deliveries have left stands. */
  goOnFrom({ indexes, texts }: Pick<LeftToDo, 'indexes' | 'texts'>): void {
    this.finishedOutputs = this.envelope.outputs - indexes.length;
    for (const [index, text] of texts) this.#texts.set(index, new OutputTextLog(text));
  }

  /** Cost of one of its outputs. */
  get rowCost(): number {
    return this.envelope.cost / this.envelope.outputs;
  }

  /** Cost of what is left. */
  get remainingCost(): number {
    let finished = this.finishedOutputs;
    for (const { share } of this.#done.values()) finished += share;
    return this.rowCost * Math.max(0, this.envelope.outputs - finished);
  }

  /** Writes what the engine says; returns how it ended, when that is what was said. */
  observe(event: EngineRequestEvent): EngineEnding | undefined {
    switch (event.type) {
      case 'progress':
        return this.#progress(event);
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
        return { state: 'succeeded' };
      case 'request-canceled':
        return { state: 'canceled' };
    }
  }

  #progress({ index, done, total, preview }: ProgressEvent): undefined {
    this.#done.set(index, { done, share: total === undefined ? 0 : done / total });
    const progress = { index, done, ...(total === undefined ? {} : { total }) };
    const of = this.#progressOfAll(total);
    const encoding = preview && this.#options.encoder.encodePreview(preview);
    // Told when it is its turn.
    encoding?.catch(() => {});
    this.#enqueue(async () => {
      if (encoding === undefined)
        return this.#write({ type: 'progress', progress, of, isOfText: this.#texts.has(index) });
      const { data, contentType } = await encoding;
      this.#write({ type: 'preview', progress, of, data, contentType });
    });
  }

  #progressOfAll(total: number | undefined): { done: number; total?: number } {
    let done = this.finishedOutputs * (total ?? 0);
    for (const output of this.#done.values()) done += output.done;
    return { done, ...(total === undefined ? {} : { total: this.envelope.outputs * total }) };
  }

  #text({ type, index, offset, text, facts }: DeltaEvent | SnapshotEvent): undefined {
    const log = this.#texts.get(index) ?? new OutputTextLog();
    this.#texts.set(index, log);
    const { differsFrom, whole } = log.add({ type, index, offset, text });
    this.#enqueue(async () => {
      if (differsFrom !== undefined) this.#write({ type: 'reset', index, offset: differsFrom });
      this.#write({ type, index, offset, text, ...(facts && { facts }) });
      if (whole !== undefined) this.#write({ type: 'snapshot', isWhole: true, ...whole });
    });
  }

  /** A row in its last step: its place can be promised to somebody else. An exclusive lease keeps all until its end. */
  #rowReleasing(): undefined {
    const { leased } = this.#options;
    const { slots, outputs } = this.envelope;
    if (leased.slots === slots) this.#write({ type: 'release', slots: Math.floor(slots / outputs) });
  }

  #output({ index, output }: OutputEvent): undefined {
    const { encoder, chunkBytes } = this.#options;
    const endsAt = this.#texts.get(index)?.endsAt;
    this.#enqueue(async () => {
      if (endsAt !== undefined) this.#write({ type: 'reset', index, offset: endsAt });
      const { data, contentType } = await encoder.encodeOutput(this.envelope.input, output);
      for (const write of splitOutput(this.delivery, { index, contentType, data, facts: output.facts, chunkBytes }))
        this.#write(write);
    });
  }

  #checkpoint({ index, checkpoint }: CheckpointEvent): undefined {
    this.#enqueue(async () => {
      this.#write({ type: 'checkpoint', index, done: checkpoint.done, data: encodeCheckpoint(checkpoint) });
    });
  }

  /** Ends the request after everything written before. One that was lost meanwhile is only let go of. */
  finish(ending: EngineEnding): Promise<WriteOutcome> {
    // Nobody has canceled it, and after a failover it may be ours again: then somebody goes on with it.
    if (ending.state === 'canceled' && this.dropped !== undefined && isLoss(this.dropped))
      return this.giveBack('worker_stopped');
    return this.#inSpan(ending.state, async () => {
      const end: RequestEnd =
        ending.state === 'succeeded' ? { state: 'succeeded', outputs: this.envelope.outputs } : (ending as RequestEnd);
      const outcome = await this.#push({ type: 'end', end });
      // `written`: the answer got lost, and it may have been that.
      if (outcome !== 'incomplete' && outcome !== 'written') return outcome;
      return this.#push({ type: 'end', end: { state: 'failed', error: incomplete } });
    });
  }

  /** Hands it back, behind all that was said. */
  giveBack(reason: 'engine_failed' | 'worker_stopped'): Promise<WriteOutcome> {
    return this.#inSpan(`given back: ${reason}`, () => this.#push({ type: 'give-back', reason }));
  }

  /** Its time in this worker is a span, and what ends it is part of that. */
  #inSpan<Result>(outcome: string, work: () => Promise<Result>): Promise<Result> {
    const { trace: parent, id, outputs } = this.envelope;
    const attributes = { 'darkroom.request_id': id, 'darkroom.outputs': outputs, 'darkroom.outcome': outcome };
    return inSpan('run', { kind: 'consumer', parent, startedAtMs: this.#startedAtMs, attributes }, work);
  }

  #enqueue(step: () => Promise<void>): undefined {
    this.#chain = this.#chain.then(step).catch(this.#options.onError);
  }

  /** Behind all that is being encoded. */
  async #push(write: WriteBody): Promise<WriteOutcome> {
    await this.#chain;
    return this.#send(write);
  }

  #write(write: WriteBody): void {
    this.#send(write)
      .then((outcome) => {
        if (outcome === 'canceling' || outcome === 'lost' || outcome === 'ended') this.#options.onRefused(outcome);
      })
      .catch(this.#options.onError);
  }

  #send(write: WriteBody): Promise<WriteOutcome> {
    const { writes, leased } = this.#options;
    return writes.push({ ...write, delivery: this.delivery }, this.#untilMs);
  }
}

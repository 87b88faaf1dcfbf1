import type { ServerResponse } from 'node:http';
import { isTerminalState, type StoredEvent, type RequestSnapshot } from '@darkroom/core';
import { readRequest } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, tooManyStreams } from '../http/api-error.ts';
import { routeOf } from '../http/observe-requests.ts';
import { isStoreUnavailable } from '../server/store-guard.ts';
import { doneFrame, heartbeatFrame, sseFrame } from './sse-frame.ts';
import { EventTail, isEnd, onAbort } from './tail-events.ts';

const encoder = new TextEncoder();
/** Bytes per write, so that a slow client on a large frame is not mistaken for one that stopped reading. */
const chunkBytes = 65_536;

/** Time after which a stream is closed if its client reads nothing, ms. */
const maxIdleMs = 60_000;

/** Ends a stream early; expected, so not logged. */
export class BrokenStream extends Error {
  override readonly name = 'BrokenStream';
}

/** Ends a stream whose request expired while it was read. */
export class ExpiredStream extends BrokenStream {
  constructor() {
    super('The request expired before its events were read.');
  }
}

export interface EventSource {
  /** Yields the text of server-sent events. `gone` aborts when the client disconnects. */
  frames: (gone: AbortSignal) => AsyncGenerator<string, void>;
  /** The first frame, if it was read ahead. */
  first?: IteratorResult<string, void>;
  /** Returns the last frame, after all others. */
  lastFrame?: () => string;
  /** Returns the frame that reports a failure to the client; without one the stream just ends. */
  errorFrame?: (error: unknown) => string | undefined;
  /** Aborts the connection if the stream fails, for clients that cannot tell an early end from a complete one. */
  breaksOff?: boolean;
  /** Content type, if the frames are not server-sent events. */
  contentType?: string;
}

/** Answers with server-sent events. Throws 429 for a key at its limit of streams, before `prepare` is called. */
export async function streamEvents(
  c: ApiCall,
  context: ApiContext,
  prepare: () => Promise<EventSource>,
): Promise<Response> {
  const { maxStreams, metrics, openStreams } = context;
  const owner = c.get('owner');
  const open = openStreams.get(owner) ?? 0;
  if (open >= maxStreams) {
    metrics.eventStreamsRefused.inc();
    throw tooManyStreams(maxStreams);
  }
  openStreams.set(owner, open + 1);
  try {
    const source = await prepare();
    const { contentType = 'text/event-stream' } = source;
    const stream = new EventStream(c, context, source);
    const { outgoing } = c.env ?? {};
    // Write to the socket: a web stream per client would double the memory per connection.
    if (outgoing !== undefined) c.env.writeBody = () => stream.writeTo(outgoing);
    return c.newResponse(outgoing === undefined ? stream.toWeb() : null, 200, {
      'Content-Type': `${contentType}; charset=utf-8`,
      'Cache-Control': 'no-store',
      // nginx would hold events back until its buffer is full.
      'X-Accel-Buffering': 'no',
    });
  } catch (error) {
    releaseStream(context, owner);
    throw error;
  }
}

/** Counts one open stream less of an owner. */
function releaseStream({ openStreams }: ApiContext, owner: string): void {
  const open = openStreams.get(owner)! - 1;
  if (open === 0) openStreams.delete(owner);
  else openStreams.set(owner, open);
}

/**
 * Writes frames to a client. Fetches the next frame when the client has read the last one, so a slow client holds one
 * in memory. A disconnect ends the frames; a client that reads nothing for too long is cut.
 */
class EventStream {
  readonly #context: ApiContext;
  readonly #owner: string;
  readonly #route: string;
  readonly #requestId: string | undefined;
  readonly #source: EventSource;
  readonly #frames: AsyncGenerator<string, void>;
  readonly #gone = new AbortController();
  #isFirst = true;
  /** The last frame was read. */
  #isOver = false;
  #isOpen = true;
  #stopWaiting = (): void => {};
  /** Ends the connection. */
  #cut = (): void => {};
  #stopRevocationListener = (): void => {};

  constructor(c: ApiCall, context: ApiContext, source: EventSource) {
    this.#context = context;
    this.#owner = c.get('owner');
    this.#route = routeOf(c);
    this.#requestId = c.get('requestId');
    this.#source = source;
    this.#frames = source.frames(this.#gone.signal);
    const { revocation } = c.get('apiKey');
    if (revocation !== undefined) this.#stopRevocationListener = onAbort([revocation.signal], () => this.#revoke());
    context.metrics.eventStreams.inc({ route: this.#route });
  }

  /** Writes all frames to the socket. The connection stays until the client has read everything or is cut. */
  async writeTo(outgoing: ServerResponse): Promise<void> {
    // The client has disconnected, or sent a HEAD request.
    if (outgoing.closed || outgoing.writableEnded) return this.#cancel();
    outgoing.once('close', () => void this.#cancel());
    // `close` follows every error.
    outgoing.on('error', () => {});
    outgoing.flushHeaders();
    const cut = (): void => void outgoing.destroy();
    this.#cut = cut;
    try {
      for (let frame = await this.#next(); frame !== undefined; frame = await this.#next())
        for (const chunk of chunksOf(frame))
          if (!this.#gone.signal.aborted && !outgoing.write(chunk)) await this.#drained(outgoing, cut);
      outgoing.end();
    } catch (error) {
      this.#report(error);
      // Sends what was written, without the end of the answer. Destroying with an error would print it to stderr.
      if (this.#source.breaksOff === true) outgoing.socket?.destroySoon();
      // EventSource clients reconnect after a stream without `[DONE]` and resume at their last event.
      else outgoing.end();
    }
    if (this.#isOpen) this.#waitForReader(cut);
  }

  /** Returns the frames as a web stream, for calls without a server (tests). */
  toWeb(): ReadableStream<Uint8Array> {
    const chunks: (string | Uint8Array)[] = [];
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      this.#cut = () => controller.error(new BrokenStream('The API key was revoked.'));
      this.#stopWaiting();
      try {
        const frame = chunks.length === 0 ? await this.#next() : undefined;
        if (this.#gone.signal.aborted) return;
        if (frame !== undefined) chunks.push(...chunksOf(frame));
        const chunk = chunks.shift();
        if (chunk !== undefined) {
          controller.enqueue(typeof chunk === 'string' ? encoder.encode(chunk) : chunk);
          return this.#waitForReader(() => controller.error(new BrokenStream('The client stopped reading.')));
        }
        controller.close();
      } catch (error) {
        this.#report(error);
        if (this.#source.breaksOff === true) controller.error(error);
        else controller.close();
      }
      this.#close();
    };
    return new ReadableStream({ pull, cancel: () => this.#cancel() }, { highWaterMark: 0 });
  }

  /** Returns the next frame; undefined after the last one, or after the frame that reports a failure. */
  async #next(): Promise<string | undefined> {
    if (this.#isOver) return undefined;
    const { first, lastFrame, errorFrame } = this.#source;
    try {
      const next = (this.#isFirst && first) || (await this.#frames.next());
      this.#isFirst = false;
      if (next.done !== true) return next.value;
      this.#isOver = true;
      return lastFrame?.();
    } catch (error) {
      this.#isOver = true;
      if (errorFrame === undefined) throw error;
      return errorFrame(error);
    }
  }

  #drained(outgoing: ServerResponse, cut: () => void): Promise<void> {
    this.#waitForReader(cut);
    return new Promise((resolve) => {
      const go = (): void => {
        this.#stopWaiting();
        outgoing.off('drain', go).off('close', go);
        resolve();
      };
      outgoing.once('drain', go).once('close', go);
    });
  }

  async #cancel(): Promise<void> {
    this.#gone.abort();
    this.#close();
    await this.#frames.return();
  }

  /** Stops the stream when its API key is revoked. */
  #revoke(): void {
    this.#cut();
    void this.#cancel();
  }

  #report(error: unknown): void {
    const { log } = this.#context;
    if (this.#gone.signal.aborted || isExpected(error)) return;
    log.error({ request_id: this.#requestId, error: String(error) }, 'stream failed');
  }

  #waitForReader(cut: () => unknown): void {
    const { every, metrics, log } = this.#context;
    const stop = every(maxIdleMs, () => {
      metrics.eventStreamsCut.inc({ route: this.#route });
      log.info({ request_id: this.#requestId }, 'event stream cut: client stopped reading');
      cut();
      void this.#cancel();
    });
    this.#stopWaiting = () => {
      this.#stopWaiting = () => {};
      stop();
    };
  }

  #close(): void {
    this.#stopWaiting();
    this.#stopRevocationListener();
    if (!this.#isOpen) return;
    this.#isOpen = false;
    releaseStream(this.#context, this.#owner);
    this.#context.metrics.eventStreams.dec({ route: this.#route });
  }
}

export interface RequestEventsOptions {
  /** Sequence number of the last event seen. */
  after?: number;
  /** Returns the frames of an event. */
  framesOf: (event: StoredEvent) => Promise<readonly string[]> | AsyncIterable<string>;
  breaksOff?: boolean;
}

/** SSE reconnection time, ms, that clients get when this API process stops. */
const retryMs = 1000;

/** Returns the source of a request's events, formatted by `framesOf`. */
export function requestEvents(
  context: ApiContext,
  { id, state }: Pick<RequestSnapshot, 'id' | 'state'>,
  { after = 0, framesOf, breaksOff = false }: RequestEventsOptions,
): EventSource {
  const isEnded = isTerminalState(state);
  return {
    breaksOff,
    async *frames(signal) {
      const tail = new EventTail(context, id, { after, isEnded, signal, includesProgress: true });
      let last: StoredEvent | undefined;
      try {
        for (let item = await tail.next(); item !== undefined; item = await tail.next()) {
          if (item === 'heartbeat') yield heartbeatFrame;
          else if (item === 'draining') {
            if (breaksOff) throw new BrokenStream('This server is stopping; the request continues.');
            return yield sseFrame({ retry: String(retryMs) });
          } else if (item === 'done') {
            if (last === undefined || !isEnd(last)) await assertLogExists(context, id);
            if (!breaksOff) yield doneFrame;
            return;
          } else for (last of item) yield* await framesOf(last);
        }
      } finally {
        tail.close();
      }
    },
  };
}

/** Splits a large frame into chunks. */
function chunksOf(frame: string): (string | Uint8Array)[] {
  // A UTF-16 unit takes at most 3 bytes in UTF-8.
  if (frame.length * 3 <= chunkBytes) return [frame];
  const bytes = encoder.encode(frame);
  const count = Math.ceil(bytes.length / chunkBytes);
  return Array.from({ length: count }, (_value, index) => bytes.subarray(index * chunkBytes, (index + 1) * chunkBytes));
}

/** Throws if the log has expired: then "no more events" does not mean that the client has seen the end. */
async function assertLogExists({ withStore }: ApiContext, id: string): Promise<void> {
  const { status } = await withStore((store) => readRequest(store, id));
  if (status !== 'found') throw new ExpiredStream();
}

function isExpected(error: unknown): boolean {
  return error instanceof BrokenStream || error instanceof ApiError || isStoreUnavailable(error);
}

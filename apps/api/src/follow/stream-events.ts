import type { ServerResponse } from 'node:http';
import { isTerminalState, type RequestEvent, type RequestStatus } from '@darkroom/core';
import { readRequest } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, tooManyStreams } from '../http/api-error.ts';
import { routeOf } from '../http/observe-requests.ts';
import { isStoreAway } from '../server/store-guard.ts';
import { doneFrame, heartbeatFrame, sseFrame } from './sse-frame.ts';
import { isEnd, tailEvents, type TailOptions } from './tail-events.ts';

const encoder = new TextEncoder();
/** Bytes handed over at a time: a reader that takes them is slow and not gone, however large the frame. */
const pieceBytes = 65_536;

/** Thrown by frames that end a stream before its end. */
export class BrokenStream extends Error {
  override readonly name = 'BrokenStream';
}

/** The time of a request was over while it was read. */
export class OverdueStream extends BrokenStream {
  constructor() {
    super('Its time was over before all of it was read.');
  }
}

export interface EventSource {
  /** Text of server-sent events. `gone` is aborted when the reader has gone. */
  frames: (gone: AbortSignal) => AsyncGenerator<string, void>;
  /** For clients that take any end for a good one: a stream that cannot go on breaks its connection off. */
  breaksOff?: boolean;
  /** What the frames are, if not events. */
  contentType?: string;
}

/** Answers with server-sent events. Throws 429 for a key that has as many streams as it may, before `prepare` is called. */
export async function streamEvents(
  c: ApiCall,
  context: ApiContext,
  prepare: () => Promise<EventSource>,
): Promise<Response> {
  const { config, metrics, streamPlaces } = context;
  const leave = streamPlaces.take(c.get('owner'));
  if (leave === undefined) {
    metrics.eventStreamsRefused.inc();
    throw tooManyStreams(config.eventStreamsMax);
  }
  try {
    const { contentType = 'text/event-stream', ...source } = await prepare();
    const stream = new EventStream(c, context, { ...source, leave });
    const { outgoing } = c.env ?? {};
    // A stream of the web for each reader takes as much memory as all else that there is of it.
    if (outgoing !== undefined) c.env.writeBody = () => stream.writeTo(outgoing);
    return c.newResponse(outgoing === undefined ? stream.toWeb() : null, 200, {
      'Content-Type': `${contentType}; charset=utf-8`,
      'Cache-Control': 'no-store',
      // nginx would hold events back until its buffer is full.
      'X-Accel-Buffering': 'no',
    });
  } catch (error) {
    leave();
    throw error;
  }
}

/**
 * The next frame is fetched when the one before has been taken, so that a slow reader holds one in memory; a reader that
 * goes ends the frames, and one that takes nothing for too long is cut.
 */
class EventStream {
  readonly #context: ApiContext;
  readonly #route: string;
  readonly #requestId: string | undefined;
  readonly #frames: AsyncGenerator<string, void>;
  readonly #breaksOff: boolean;
  readonly #gone = new AbortController();
  #leave: (() => void) | undefined;
  #stopWaiting = (): void => {};

  constructor(
    c: ApiCall,
    context: ApiContext,
    { frames, breaksOff = false, leave }: EventSource & { leave: () => void },
  ) {
    this.#context = context;
    this.#route = routeOf(c);
    this.#requestId = c.get('requestId');
    this.#frames = frames(this.#gone.signal);
    this.#breaksOff = breaksOff;
    this.#leave = leave;
    context.metrics.eventStreams.inc({ route: this.#route });
  }

  /** Ends with the connection, which stays until its reader has taken all, or is cut. */
  async writeTo(outgoing: ServerResponse): Promise<void> {
    // It has gone, or asked for the head only.
    if (outgoing.closed || outgoing.writableEnded) return this.#cancel();
    outgoing.once('close', () => void this.#cancel());
    // It is closed then, too.
    outgoing.on('error', () => {});
    outgoing.flushHeaders();
    const cut = (): unknown => outgoing.destroy();
    try {
      for (let next = await this.#frames.next(); next.done !== true; next = await this.#frames.next())
        for (const piece of piecesOf(next.value))
          if (!this.#gone.signal.aborted && !outgoing.write(piece)) await this.#taken(outgoing, cut);
      outgoing.end();
    } catch (error) {
      this.#report(error);
      // What was written goes out, and no end of the answer follows it. An error of the stream would go to stderr.
      if (this.#breaksOff) outgoing.socket?.destroySoon();
      // A closed stream without an end sends its reader back to where it was.
      else outgoing.end();
    }
    if (this.#leave !== undefined) this.#waitForReader(cut);
  }

  /** Where there is no server. */
  toWeb(): ReadableStream<Uint8Array> {
    const pieces: (string | Uint8Array)[] = [];
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      this.#stopWaiting();
      try {
        const next = pieces.length === 0 ? await this.#frames.next() : undefined;
        if (this.#gone.signal.aborted) return;
        if (next?.done !== true) {
          if (next !== undefined) pieces.push(...piecesOf(next.value));
          const piece = pieces.shift()!;
          controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
          return this.#waitForReader(() => controller.error(new BrokenStream('The reader takes nothing.')));
        }
        controller.close();
      } catch (error) {
        this.#report(error);
        if (this.#breaksOff) controller.error(error);
        else controller.close();
      }
      this.#close();
    };
    return new ReadableStream({ pull, cancel: () => this.#cancel() }, { highWaterMark: 0 });
  }

  #taken(outgoing: ServerResponse, cut: () => void): Promise<void> {
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

  #report(error: unknown): void {
    const { log } = this.#context;
    if (this.#gone.signal.aborted || isExpected(error)) return;
    log.error({ request_id: this.#requestId, error: String(error) }, 'a stream failed');
  }

  #waitForReader(cut: () => unknown): void {
    const { config, every, metrics, log } = this.#context;
    const stop = every(config.eventStreamIdleS * 1000, () => {
      metrics.eventStreamsCut.inc({ route: this.#route });
      log.info({ request_id: this.#requestId }, 'a reader that takes nothing was cut');
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
    if (this.#leave === undefined) return;
    this.#leave();
    this.#leave = undefined;
    this.#context.metrics.eventStreams.dec({ route: this.#route });
  }
}

export interface RequestEventsOptions {
  /** Sequence number of the last event seen. */
  after?: number;
  /** What goes over the wire for an event. */
  framesOf: (event: RequestEvent) => AsyncIterable<string>;
  breaksOff?: boolean;
}

/** Milliseconds until a reader comes back whose API process stops. */
const retryMs = 1000;

/** The events of a request, each as `framesOf` has it. */
export function requestEvents(
  context: ApiContext,
  { id, state }: Pick<RequestStatus, 'id' | 'state'>,
  { after = 0, framesOf, breaksOff = false }: RequestEventsOptions,
): EventSource {
  const isEnded = isTerminalState(state);
  const frames = (signal: AbortSignal) =>
    framesOfTail(context, id, { after, isEnded, signal, isOfProgress: true }, { framesOf, breaksOff });
  return { breaksOff, frames };
}

async function* framesOfTail(
  context: ApiContext,
  id: string,
  options: TailOptions,
  { framesOf, breaksOff }: Required<Pick<RequestEventsOptions, 'framesOf' | 'breaksOff'>>,
): AsyncGenerator<string, void> {
  let hasEnded = false;
  for await (const item of tailEvents(context, id, options))
    if (item === 'heartbeat') yield heartbeatFrame;
    else if (item === 'draining') {
      if (breaksOff) throw new BrokenStream('This server stops; the request goes on.');
      yield sseFrame({ retry: String(retryMs) });
    } else if (item !== 'done') {
      hasEnded = isEnd(item);
      yield* framesOf(item);
    } else {
      if (!hasEnded) await expectLog(context, id);
      if (!breaksOff) yield doneFrame;
    }
}

/** A frame as it is handed over: as it is, unless it is large. */
function piecesOf(frame: string): (string | Uint8Array)[] {
  // No character takes more bytes of UTF-8 than that.
  if (frame.length * 3 <= pieceBytes) return [frame];
  const bytes = encoder.encode(frame);
  const count = Math.ceil(bytes.length / pieceBytes);
  return Array.from({ length: count }, (_value, index) => bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes));
}

/** Nothing follows what a reader has if the log is there; one whose time is over holds nothing, whatever the reader has. */
async function expectLog({ askStore }: ApiContext, id: string): Promise<void> {
  const { status } = await askStore((store) => readRequest(store, id));
  if (status !== 'found') throw new OverdueStream();
}

function isExpected(error: unknown): boolean {
  return error instanceof BrokenStream || error instanceof ApiError || isStoreAway(error);
}

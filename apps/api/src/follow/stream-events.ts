import type { ServerResponse } from 'node:http';
import { isTerminalState, type RequestEvent, type RequestStatus } from '@darkroom/core';
import { readRequest } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, tooManyStreams } from '../http/api-error.ts';
import { routeOf } from '../http/observe-requests.ts';
import { isStoreAway } from '../server/store-guard.ts';
import { doneFrame, heartbeatFrame, sseFrame } from './sse-frame.ts';
import { isEnd, tailEvents } from './tail-events.ts';

const encoder = new TextEncoder();
/** Bytes handed over at a time: a reader that takes them is slow and not gone, however large the frame. */
const pieceBytes = 65_536;

/** Thrown by frames that end a stream before its end. */
export class BrokenStream extends Error {
  override readonly name = 'BrokenStream';
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
    const source = await prepare();
    const stream = new EventStream(c, context, { ...source, leave });
    return c.body(new ReadableStream(stream, { highWaterMark: 0 }), 200, {
      'Content-Type': `${source.contentType ?? 'text/event-stream'}; charset=utf-8`,
      'Cache-Control': 'no-store',
      // nginx would hold events back until its buffer is full.
      'X-Accel-Buffering': 'no',
    });
  } catch (error) {
    leave();
    throw error;
  }
}

type Controller = ReadableStreamDefaultController<Uint8Array>;

/**
 * The next frame is fetched when the one before has been taken, so that a slow reader holds one in memory; a reader that
 * goes ends the frames, and one that takes nothing for too long is cut.
 */
class EventStream {
  readonly #context: ApiContext;
  readonly #labels: { route: string };
  readonly #requestId: string | undefined;
  readonly #connection: ServerResponse | undefined;
  readonly #frames: AsyncGenerator<string, void>;
  readonly #breaksOff: boolean;
  readonly #gone = new AbortController();
  #leave: (() => void) | undefined;
  #stopWaiting = (): void => {};
  #rest = new Uint8Array();

  constructor(
    c: ApiCall,
    context: ApiContext,
    { frames, breaksOff = false, leave }: EventSource & { leave: () => void },
  ) {
    this.#context = context;
    this.#labels = { route: routeOf(c) };
    this.#requestId = c.get('requestId');
    // There is none when the app is called without a server.
    const connection = (c.env as { outgoing?: ServerResponse } | undefined)?.outgoing;
    this.#connection = connection?.closed === true ? undefined : connection;
    this.#frames = frames(this.#gone.signal);
    this.#breaksOff = breaksOff;
    this.#leave = leave;
    context.metrics.eventStreams.inc(this.#labels);
    this.#connection?.once('close', () => this.#close());
  }

  async pull(controller: Controller): Promise<void> {
    this.#stopWaiting();
    try {
      if (this.#rest.length === 0) {
        const next = await this.#frames.next();
        if (this.#gone.signal.aborted) return;
        if (next.done === true) return this.#end(controller, () => controller.close());
        this.#rest = encoder.encode(next.value);
      }
      controller.enqueue(this.#rest.subarray(0, pieceBytes));
      this.#rest = this.#rest.subarray(pieceBytes);
      this.#waitForReader(controller);
    } catch (error) {
      if (!this.#gone.signal.aborted) this.#fail(controller, error);
    }
  }

  async cancel(): Promise<void> {
    this.#gone.abort();
    this.#close();
    await this.#frames.return();
  }

  /** The connection stays until its reader has taken all, or is cut. */
  #end(controller: Controller, end: () => void): void {
    end();
    if (this.#connection === undefined) this.#close();
    else this.#waitForReader(controller);
  }

  #fail(controller: Controller, error: unknown): void {
    const { log } = this.#context;
    if (!isExpected(error)) log.error({ request_id: this.#requestId, error: String(error) }, 'a stream failed');
    this.#end(controller, () => {
      // A closed stream without an end sends its reader back to where it was.
      if (!this.#breaksOff) controller.close();
      else if (this.#connection === undefined) controller.error(error);
      // What was written goes out, and no end of the answer follows it. An error of the stream would go to stderr.
      else this.#connection.socket?.destroySoon();
    });
  }

  #waitForReader(controller: Controller): void {
    const { config, every, metrics, log } = this.#context;
    this.#stopWaiting = every(config.eventStreamIdleS * 1000, () => {
      metrics.eventStreamsCut.inc(this.#labels);
      log.info({ request_id: this.#requestId }, 'a reader that takes nothing was cut');
      if (this.#connection === undefined) controller.error(new BrokenStream('The reader takes nothing.'));
      else this.#connection.destroy();
      void this.cancel();
    });
  }

  #close(): void {
    this.#stopWaiting();
    if (this.#leave === undefined) return;
    this.#leave();
    this.#leave = undefined;
    this.#context.metrics.eventStreams.dec(this.#labels);
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
  return {
    breaksOff,
    async *frames(signal) {
      let hasEnded = false;
      const options = { after, isEnded: isTerminalState(state), signal, isOfProgress: true };
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
    },
  };
}

/** Nothing follows what a reader has if the log is there; one whose time is over holds nothing, whatever the reader has. */
async function expectLog({ askStore }: ApiContext, id: string): Promise<void> {
  const { status } = await askStore((store) => readRequest(store, id));
  if (status !== 'found') throw new BrokenStream('Its time was over before all of it was read.');
}

function isExpected(error: unknown): boolean {
  return error instanceof BrokenStream || error instanceof ApiError || isStoreAway(error);
}

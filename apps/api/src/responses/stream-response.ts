/** Streams a response as server-sent events. */
import type { RequestSnapshot } from '@darkroom/core';
import type { ApiContext } from '../context/context.ts';
import { doneFrame, heartbeatFrame, sseFrame } from '../follow/sse-frame.ts';
import { streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { errorBody } from '../http/error-response.ts';
import { storedErrorOf } from '../answer/answer-stored.ts';
import { followStored } from '../answer/follow-stored.ts';
import { textChanged } from '../answer/stored-request-error.ts';
import type { ClientWatch } from '../answer/watch-client.ts';
import { afterNumber } from './after-number.ts';
import { ResponseReader } from './response-events.ts';
import { idOf } from './response-ids.ts';
import type { StoredResponse } from './response-view.ts';

export interface FollowedResponse {
  request: StoredResponse & Pick<RequestSnapshot, 'timeoutMs'>;
  /** Number of the last event that the client has; −1 for none. */
  after: number;
  /** Cancels the response when the client disconnects. Absent if it must continue and can be resumed. */
  watch?: ClientWatch;
}

/** Answers with the events of a response. */
export function streamResponse(
  c: ApiCall,
  context: ApiContext,
  find: () => Promise<FollowedResponse>,
): Promise<Response> {
  return streamEvents(c, context, async () => {
    const { watch, ...found } = await find();
    return {
      frames(gone) {
        gone.addEventListener('abort', () => watch?.leave());
        const { timeoutMs } = found.request;
        const unwatched: ClientWatch = { timeoutMs, hasKey: true, gone, leave: () => {}, stop: () => {} };
        return framesOf(context, { ...found, watch: watch ?? unwatched });
      },
    };
  });
}

/** Yields the frames of a response. A stream that ends with an error has no `[DONE]`. */
async function* framesOf(
  context: ApiContext,
  { request, after, watch }: Required<FollowedResponse>,
): AsyncGenerator<string, void> {
  const { id } = request;
  const onRetracted = (): never => {
    throw textChanged(id);
  };
  const reader = new ResponseReader(request, { after, onRetracted });
  let last = after;
  try {
    for await (const item of followStored(context, id, watch, (event) => reader.read(event))) {
      const event = item === 'heartbeat' ? undefined : afterNumber(item, after);
      if (item === 'heartbeat') yield heartbeatFrame;
      else if (event !== undefined) {
        last = event.sequence_number;
        yield sseFrame({ event: event.type, data: event });
      }
    }
  } catch (error) {
    if (error instanceof ApiError && watch.gone.aborted) return;
    // If the response has ended, the failure was sent as an event of the response.
    if (!reader.hasEnded) {
      watch.stop();
      return yield errorFrame(storedErrorOf(context, id, error, 'stream failed'), { id, last });
    }
  }
  watch.stop();
  yield doneFrame;
}

/**
 * Creates OpenAI's error event; its SDKs throw what `error` contains. The event has the number of the last event before
 * it, so that a client that resumes after it loses nothing.
 */
function errorFrame(error: ApiError, { id, last }: { id: string; last: number }): string {
  const { message, error: thrown } = errorBody(error);
  const after = last < 0 ? '' : `&starting_after=${last}`;
  const text =
    error.code === 'server_stopping'
      ? `The server is shutting down; resume at /v1/responses/${idOf('response', id)}?stream=true${after}.`
      : message;
  const { code, param } = thrown;
  const data = {
    type: 'error',
    sequence_number: last,
    code,
    message: text,
    param,
    error: { ...thrown, message: text },
  };
  return sseFrame({ event: 'error', data });
}

/** A response as server-sent events. */
import type { RequestStatus } from '@darkroom/core';
import type { ApiContext } from '../context.ts';
import { doneFrame, heartbeatFrame, sseFrame } from '../follow/sse-frame.ts';
import { streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { errorBody } from '../http/error-response.ts';
import { storedErrorOf } from '../follow/answer-stored.ts';
import { followStored } from '../follow/follow-stored.ts';
import { textChanged } from '../follow/stored-request-error.ts';
import type { ClientWatch } from '../follow/watch-client.ts';
import { afterNumber, ResponseReader } from './response-events.ts';
import { idOf } from './response-ids.ts';
import type { StoredResponse } from './response-view.ts';

export interface FollowedResponse {
  request: StoredResponse & Pick<RequestStatus, 'timeoutMs'>;
  /** The number of the last event that its reader has; −1 for none. */
  after: number;
  /** Who cancels it by going away. Absent where nobody does, and whoever goes may come back for the rest. */
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
      async *frames(gone) {
        gone.addEventListener('abort', () => watch?.leave());
        const { timeoutMs } = found.request;
        const free: ClientWatch = { timeoutMs, hasKey: true, gone, leave: () => {}, stop: () => {} };
        yield* framesOf(context, { ...found, watch: watch ?? free });
      },
    };
  });
}

/** What ends in an error ends without `[DONE]`. */
async function* framesOf(
  context: ApiContext,
  { request, after, watch }: Required<FollowedResponse>,
): AsyncGenerator<string, void> {
  const { id } = request;
  const onTakenBack = (): never => {
    throw textChanged(id);
  };
  const reader = new ResponseReader(request, { after, onTakenBack });
  let last = after;
  try {
    for await (const item of followStored(context, id, watch, (event) => toAsync(reader.read(event)))) {
      const event = item === 'heartbeat' ? undefined : afterNumber(item, after);
      if (item === 'heartbeat') yield heartbeatFrame;
      else if (event !== undefined) {
        last = event.sequence_number;
        yield sseFrame({ event: event.type, data: event });
      }
    }
  } catch (error) {
    if (error instanceof ApiError && watch.gone.aborted) return;
    // An end without a text is one of the events, and no error.
    if (!reader.isOver) {
      watch.stop();
      return yield errorFrame(storedErrorOf(context, id, error, 'a stream failed'), { id, last });
    }
  }
  watch.stop();
  yield doneFrame;
}

export async function* toAsync<Item>(items: Iterable<Item>): AsyncGenerator<Item, void> {
  yield* items;
}

/** As OpenAI describes it, with what its SDKs throw in `error`. It has the number of the last event before it: who goes on after it has lost nothing. */
function errorFrame(error: ApiError, { id, last }: { id: string; last: number }): string {
  const { message, error: thrown } = errorBody(error);
  const after = last < 0 ? '' : `&starting_after=${last}`;
  const text =
    error.code === 'server_stopping'
      ? `The server stops; go on with /v1/responses/${idOf('response', id)}?stream=true${after}.`
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

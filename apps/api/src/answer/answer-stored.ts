/**
 * Answers of OpenAI-compatible routes. A disconnect before the answer cancels the request, unless it has an
 * Idempotency-Key. Errors after the request is stored are 422s that no SDK retries (`stored-request-error.ts`).
 */
import { randomUUID } from 'node:crypto';
import type { ApiContext } from '../context/context.ts';
import { streamEvents } from '../follow/stream-events.ts';
import { doneFrame, sseFrame } from '../follow/sse-frame.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { errorBody } from '../http/error-response.ts';
import { type Submission, type SubmittedRequest, submitRequest } from '../submit/submit-request.ts';
import { toStoredError } from './stored-request-error.ts';
import { type ClientWatch, watchClient } from './watch-client.ts';

/** Submits a request and answers with the JSON that `answerOf` resolves with. */
export async function answerStored(
  c: ApiCall,
  context: ApiContext,
  submission: Submission,
  answerOf: (submitted: SubmittedRequest, watch: ClientWatch) => Promise<object>,
): Promise<Response> {
  const { submitted, watch } = await submitWatched(c, context, submission);
  try {
    return c.json(await answerOf(submitted, watch), 200);
  } catch (error) {
    throw storedErrorOf(context, submitted.id, error, 'answer failed');
  } finally {
    watch.stop();
  }
}

/** `events`: server-sent events with names, also for errors. `chunks`: data without names, as in chat completions. */
export type StreamShape = 'events' | 'chunks';

/** Submits a request and streams the frames of `framesOf`, then `[DONE]`. */
export function streamStored(
  c: ApiCall,
  context: ApiContext,
  submission: Submission,
  framesOf: (submitted: SubmittedRequest, watch: ClientWatch) => AsyncGenerator<string, void>,
  shape: StreamShape = 'events',
): Promise<Response> {
  return streamEvents(c, context, async () => {
    const { submitted, watch } = await submitWatched(c, context, submission);
    const { id } = submitted;
    const frames = framesOf(submitted, watch);
    const fail = (error: unknown): ApiError => {
      watch.stop();
      return storedErrorOf(context, id, error, 'stream failed');
    };
    return {
      // Read the first frame (or heartbeat, or end) before the headers go out, so that an error can set the status.
      first: shape === 'chunks' ? await frames.next().catch((error) => Promise.reject(fail(error))) : undefined,
      frames(gone) {
        // Also covers a client that disconnects before it has read anything.
        gone.addEventListener('abort', watch.leave);
        return frames;
      },
      lastFrame() {
        watch.stop();
        return doneFrame;
      },
      errorFrame(error) {
        if (error instanceof ApiError && watch.gone.aborted) return undefined;
        const data = { ...errorBody(fail(error)), request_id: id };
        // OpenAI's clients throw on `error`, so nothing follows it.
        return sseFrame(shape === 'chunks' ? { data } : { event: 'error', data });
      },
    };
  });
}

/** Submits a request and cancels it when its client disconnects. */
export async function submitWatched(c: ApiCall, context: ApiContext, submission: Submission) {
  const submitted = await submitRequest(c, context, submission);
  c.header('X-Request-Id', submitted.id);
  return { submitted, watch: watchClient(c, context, submitted) };
}

/** Returns the error answer for a failure after the request was stored; logs unexpected errors. */
export function storedErrorOf({ log }: Pick<ApiContext, 'log'>, id: string, error: unknown, what: string): ApiError {
  const errorId = randomUUID();
  if (!(error instanceof ApiError)) log.error({ error_id: errorId, request_id: id, err: error }, what);
  return toStoredError(error, errorId);
}

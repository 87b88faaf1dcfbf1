/**
 * How routes answer that speak as OpenAI's, whatever they answer with:
 *
 * - `X-Request-Id` is the request's id, which OpenAI's SDKs show as `_request_id`; every other route takes it. The headers
 *   of a stream of events go out at once; those of one answer go out with the answer, and those of a stream of chunks with
 *   the first of them, for nobody knows the status before. Where that takes longer than the time between two heartbeats, they
 *   go out with the first of these: clients and proxies give up on an answer that does not begin.
 * - A client that goes away before it has its answer cancels the request: it has no other way to say so, and who waits
 *   for one answer has never seen an id. SDKs go away too when their patience is over, and then send the POST again; that
 *   is a new request, and the old one must not be drawn beside it. With an `Idempotency-Key` a client may come back to
 *   the same request, so with one nothing is canceled: it is for `DELETE /v1/predict/{id}` then.
 * - Before the request is stored, errors are as everywhere, and SDKs may try again. After that an error is a 422 that no
 *   SDK sends again (`stored-request-error.ts`), or in a stream that has begun an event or a chunk with `error`.
 * - A Redis that goes away meanwhile is waited for. When this process is told to stop, answers wait for `drainGraceMs`
 *   more; then they say where the request goes on, and SDKs with an `Idempotency-Key` are told to send it again.
 */
import { randomUUID } from 'node:crypto';
import type { ApiContext } from '../context.ts';
import { streamEvents } from './stream-events.ts';
import { doneFrame, sseFrame } from './sse-frame.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { errorBody } from '../http/error-response.ts';
import { type Submission, type SubmittedRequest, submitRequest } from '../submit/submit-request.ts';
import { toStoredError } from './stored-request-error.ts';
import { type ClientWatch, watchClient } from './watch-client.ts';

/** Answers when all is done, with what `answerOf` makes of it. */
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
    throw storedErrorOf(context, submitted.id, error, 'an answer failed');
  } finally {
    watch.stop();
  }
}

/** `events` have names, and so has an error among them. `chunks` are data without a name, as of chat completions. */
export type StreamShape = 'events' | 'chunks';

/** Answers with server-sent events: what `framesOf` yields, and `[DONE]`. */
export function streamStored(
  c: ApiCall,
  context: ApiContext,
  submission: Submission,
  framesOf: (submitted: SubmittedRequest, watch: ClientWatch) => AsyncGenerator<string, void>,
  shape: StreamShape = 'events',
): Promise<Response> {
  return streamEvents(c, context, async () => {
    const { submitted, watch } = await submitWatched(c, context, submission);
    const frames = framesOf(submitted, watch);
    const first = shape === 'chunks' ? await firstOf(frames, context, submitted.id, watch) : undefined;
    const relayed = { frames, first, id: submitted.id, watch, shape };
    return {
      frames(gone) {
        // A reader that goes away has gone for good, perhaps before it took anything.
        gone.addEventListener('abort', () => {
          watch.leave();
          void frames.return();
        });
        return relay(context, relayed);
      },
    };
  });
}

interface Relayed {
  frames: AsyncGenerator<string, void>;
  /** What was taken of them. */
  first: IteratorResult<string, void> | undefined;
  id: string;
  watch: ClientWatch;
  shape: StreamShape;
}

async function* relay(context: ApiContext, { frames, first, id, watch, shape }: Relayed): AsyncGenerator<string, void> {
  try {
    for (let next = first ?? (await frames.next()); next.done !== true; next = await frames.next()) {
      if (watch.gone.aborted) return;
      yield next.value;
    }
    watch.stop();
    yield doneFrame;
  } catch (error) {
    if (error instanceof ApiError && watch.gone.aborted) return;
    watch.stop();
    const data = { ...errorBody(storedErrorOf(context, id, error, 'a stream failed')), request_id: id };
    // OpenAI's clients throw what is in `error`; nothing follows.
    yield sseFrame(shape === 'chunks' ? { data } : { event: 'error', data });
  } finally {
    await frames.return();
  }
}

/** The first of them, be it a heartbeat, or the end. What goes wrong before is thrown, as an answer. */
async function firstOf(
  frames: AsyncGenerator<string, void>,
  context: ApiContext,
  id: string,
  watch: ClientWatch,
): Promise<IteratorResult<string, void>> {
  try {
    return await frames.next();
  } catch (error) {
    watch.stop();
    throw storedErrorOf(context, id, error, 'a stream failed');
  }
}

/** The request is stored, and canceled when its client goes away. */
export async function submitWatched(c: ApiCall, context: ApiContext, submission: Submission) {
  const submitted = await submitRequest(c, context, submission);
  c.header('X-Request-Id', submitted.id);
  return { submitted, watch: watchClient(c, context, submitted) };
}

/** What a client is told after its request was stored; what nobody foresaw is logged. */
export function storedErrorOf({ log }: Pick<ApiContext, 'log'>, id: string, error: unknown, what: string): ApiError {
  const errorId = randomUUID();
  if (!(error instanceof ApiError)) log.error({ error_id: errorId, request_id: id, err: error }, what);
  return toStoredError(error, errorId);
}

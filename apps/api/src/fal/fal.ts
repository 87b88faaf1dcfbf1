/** Routes for the unmodified `@fal-ai/client` (docs/drop-in.md). */
import { isoTime, isTerminalState, type OutputProgress, type RequestSnapshot } from '@darkroom/core';
import { base64Of, falFailure, falResult, progressBar, secondsBetween } from '@darkroom/kinds';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { ApiContext } from '../context/context.ts';
import { parseExternalBody } from '../compat/compat-input.ts';
import { checkSafetyCheckerField, findImageRequest, openImageUrl, submitImage } from '../compat/compat-images.ts';
import { awaitEnd } from '../follow/await-end.ts';
import { isEnd } from '../follow/tail-events.ts';
import { cancelFound, findRequest } from '../follow/find-request.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { withPreview } from '../follow/event-bytes.ts';
import { BrokenStream, requestEvents, type RequestEventsOptions, streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, checkField } from '../http/api-error.ts';
import { type Route, routesOf } from '../openapi/api-route.ts';
import { errorResponse } from '../http/error-response.ts';
import { readJsonBody } from '../body/read-json-body.ts';
import { absoluteUrl, noStore } from '../http/public-url.ts';
import { onceStored } from '../submit/submit-request.ts';
import { queryOf } from './fal-proxy.ts';
import { falToImageBody, falDocuments, falNames, falSchema, idHeader, priorityHeader } from './fal-schema.ts';

/** Extra time to wait: the janitor expires a request a little after its deadline. */
const slackMs = 10_000;
/** Our priority of requests with `priority: "low"`. */
const lowPriority = 10;

export const falRoutes: readonly Route[] = routesOf(falDocuments, {
  async submit(c, context) {
    const { id, position } = await submit(c, context);
    return c.json({ status: 'IN_QUEUE', ...urlsOf(c, id), queue_position: position ?? 0 }, 200, headersOf(id));
  },
  async status(c, context) {
    const request = await find(c, context);
    const isEnded = isTerminalState(request.state);
    return c.json(statusOf(c, request, context.clock.now()), isEnded ? 200 : 202, headersOf(request.id));
  },
  streamStatus: (c, context) =>
    streamEvents(c, context, async () => {
      const request = await find(c, context);
      c.header(idHeader, request.id);
      return requestEvents(context, request, { framesOf: statusFrames(c, request.id), breaksOff: true });
    }),
  result: async (c, context) => answerOf(c, context, await find(c, context)),
  async cancel(c, context) {
    const { id } = await find(c, context);
    const result = await cancelFound(c, context, id);
    if (result.status !== 'ended') return c.json({ status: 'CANCELLATION_REQUESTED' }, 202, headersOf(id));
    return c.json({ status: 'ALREADY_COMPLETED', message: `The request is ${result.state}.` }, 400, headersOf(id));
  },
  async run(c, context) {
    const { id } = await submit(c, context);
    const answer = await onceStored(async () => {
      const request = await awaitEnd(c, context, id, context.config.requestTimeoutS * 1000 + slackMs);
      return isTerminalState(request.state) ? answerOf(c, context, request) : undefined;
    });
    // Not 5xx or 429: the client would retry and create a second request.
    return answer ?? refuse(c, 408, 'still_open', `Request ${id} continues: fetch its result from the queue.`);
  },
  stream: (c, context) =>
    streamEvents(c, context, async () => {
      const { id } = await submit(c, context);
      c.header(idHeader, id);
      const framesOf = imageFrames(c, context, id);
      return requestEvents(context, { id, state: 'queued' }, { framesOf, breaksOff: true });
    }),
});

async function submit(c: ApiCall, context: ApiContext) {
  const input = parseExternalBody(falSchema, await readJsonBody(c, context.config.maxBodyBytes));
  const name = 'x-fal-queue-priority';
  const priority = checkField(priorityHeader, name, c.req.header(name), 'normal or low');
  const startTimeout = c.req.header('x-fal-request-timeout');
  const body = {
    ...falToImageBody(input),
    model: c.req.param('app'),
    webhook_url: queryOf(c, 'fal_webhook') ?? undefined,
    ...(priority === 'low' ? { priority: lowPriority } : {}),
    ...(startTimeout === undefined
      ? {}
      : { start_timeout_s: /\d/.test(startTimeout) ? Number(startTimeout) : startTimeout }),
  };
  const given = { value: input.enable_safety_checker, withChecker: true };
  const refine = checkSafetyCheckerField('enable_safety_checker', given);
  return submitImage(c, context, body, { names: falNames, refine, webhook: { view: 'fal' } });
}

/** Finds the request in the path, which must also name its model. */
function find(c: ApiCall, context: ApiContext): Promise<RequestSnapshot> {
  return findImageRequest(c, context, c.req.param('app'));
}

function urlsOf(c: ApiCall, id: string) {
  const { owner, app } = c.req.param() as { owner: string; app: string };
  const url = absoluteUrl(c, `/fal/queue/${owner}/${app}/requests/${id}`);
  return { request_id: id, response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` };
}

function headersOf(id: string) {
  return { ...noStore, [idHeader]: id };
}

function statusOf(c: ApiCall, request: RequestSnapshot, nowMs: number) {
  const { id, state, queuePosition, done, total, endedAtMs, startedAtMs } = request;
  const urls = urlsOf(c, id);
  if (state === 'queued') return { status: 'IN_QUEUE', ...urls, queue_position: queuePosition ?? 0 };
  const isLogged = queryOf(c, 'logs') === '1' && total > 0;
  const logs = isLogged ? [logOf({ done, total }, endedAtMs ?? nowMs)] : [];
  if (state === 'running') return { status: 'IN_PROGRESS', ...urls, logs };
  const metrics = { inference_time: secondsBetween(startedAtMs, endedAtMs) ?? null };
  return { status: 'COMPLETED', ...urls, logs, metrics, ...falFailure(request) };
}

function logOf({ done, total = 0 }: Omit<OutputProgress, 'index'>, timestampMs: number) {
  const timestamp = isoTime(timestampMs);
  return { message: progressBar(done, total), level: 'INFO', source: 'USER', timestamp };
}

/** Answers with the result of a request, or with its error. */
async function answerOf(c: ApiCall, context: ApiContext, request: RequestSnapshot): Promise<Response> {
  c.set('requestId', request.id);
  if (request.state === 'succeeded') return c.json(await resultOf(c, context, request), 200, headersOf(request.id));
  const { error, error_type: code = '' } = falFailure(request);
  if (error === undefined) return refuse(c, 400, 'request_in_progress', 'Request is still in progress');
  return refuse(c, statusOfFailure[code] ?? failedStatus, code, error);
}

/** Not 500, which invites a retry. */
const failedStatus = 424;
const statusOfFailure: Readonly<Record<string, number>> = { client_cancelled: 499, request_timeout: 504 };

/** Answers with an error without logging it: the component that failed has logged it. */
function refuse(c: ApiCall, status: number, code: string, message: string): Response {
  // After a 504 the client retries unless this header states that the user set the timeout.
  const headers: Record<string, string> = status === 504 ? { 'x-fal-request-timeout-type': 'user' } : {};
  return errorResponse(c, new ApiError(status as ContentfulStatusCode, code, message, { headers }));
}

async function resultOf(c: ApiCall, context: ApiContext, request: RequestSnapshot) {
  const { id, outputs, expiresAtMs } = request;
  const fromMs = context.clock.now();
  const urls = outputs.map((output) => openImageUrl(c, context, { id, output, fromMs, expiresAtMs }));
  return falResult(request, await Promise.all(urls));
}

type FramesOf = RequestEventsOptions['framesOf'];

/** Frames of `subscribe` in streaming mode and of `queue.streamStatus`: a status per change, with its new log lines. */
function statusFrames(c: ApiCall, id: string): FramesOf {
  const urls = urlsOf(c, id);
  const isLogged = queryOf(c, 'logs') === '1';
  const frame = (status: object): string => sseFrame({ data: { ...status, ...urls } });
  return async function* (event) {
    if (event.type === 'queued') yield frame({ status: 'IN_QUEUE', queue_position: event.position });
    else if (event.type === 'started') yield frame({ status: 'IN_PROGRESS', logs: [] });
    else if (isLogged && (event.type === 'progress' || event.type === 'preview'))
      yield frame({ status: 'IN_PROGRESS', logs: [logOf(event, event.timestampMs)] });
    else if (isEnd(event))
      yield frame({ status: 'COMPLETED', logs: [], ...falFailure({ state: event.type, error: event.error }) });
  };
}

/** Frames of `stream`: previews, then the result. A failure aborts the connection, as the client expects. */
function imageFrames(c: ApiCall, context: ApiContext, id: string): FramesOf {
  return async function* (event) {
    if (event.type === 'preview') {
      const { contentType, data, done, total } = await withPreview(context.withStore, id, event);
      if (data === undefined) return;
      const url = `data:${contentType};base64,${base64Of(data)}`;
      yield sseFrame({ data: { images: [{ url, content_type: contentType }], step: done, total_steps: total } });
    } else if (event.type === 'succeeded')
      yield sseFrame({
        data: await resultOf(c, context, await findRequest(context.withStore, id, c.get('owner'))),
      });
    else if (isEnd(event)) {
      const { error: detail, error_type } = falFailure({ state: event.type, error: event.error });
      yield sseFrame({ data: { detail, error_type } });
      throw new BrokenStream(detail);
    }
  };
}

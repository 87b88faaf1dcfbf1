/** The view of a request that `@fal-ai/client` knows, used as it is (docs/drop-in.md). */
import { isoTime, isTerminalState, type OutputProgress, type RequestStatus } from '@darkroom/core';
import { base64Of, type StoredPictureInput } from '@darkroom/kinds';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { ApiContext } from '../context.ts';
import { parseForeign } from '../drop-in/foreign-input.ts';
import {
  agreeOnChecker,
  findPicture,
  openPictureUrl,
  progressBar,
  secondsBetween,
  submitPicture,
} from '../drop-in/foreign-pictures.ts';
import { awaitEnd } from '../follow/await-end.ts';
import { isEnd } from '../follow/tail-events.ts';
import { cancelFound, findRequest } from '../follow/find-request.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { withPreview } from '../follow/with-preview.ts';
import { BrokenStream, requestEvents, type RequestEventsOptions, streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError, checkField, invalidField } from '../http/api-error.ts';
import { type Route, routesOf } from '../http/api-route.ts';
import { errorResponse } from '../http/error-response.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { absoluteUrl, noStore } from '../http/urls.ts';
import { onceStored } from '../submit/submit-request.ts';
import { queryOf } from './fal-proxy.ts';
import { bodyOf, falDocuments, falNames, falSchema, idHeader, priorityHeader } from './fal-schema.ts';

/** The janitor ends a request a little after its deadline. */
const slackMs = 10_000;
/** How a request waits that is sent with `priority: "low"`. */
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
    // Neither a 5xx nor a 429: after those the client would send a second request.
    return answer ?? refuse(c, 408, 'still_open', `Request ${id} goes on: fetch its result from the queue.`);
  },
  stream: (c, context) =>
    streamEvents(c, context, async () => {
      const { id } = await submit(c, context);
      c.header(idHeader, id);
      const framesOf = pictureFrames(c, context, id);
      return requestEvents(context, { id, state: 'queued' }, { framesOf, breaksOff: true });
    }),
});

async function submit(c: ApiCall, context: ApiContext) {
  const input = parseForeign(falSchema, await readJsonBody(c, context.config.maxBodyBytes));
  const webhook = queryOf(c, 'fal_webhook');
  if (webhook !== null) throw invalidField('fal_webhook', webhook, 'none: poll or subscribe instead');
  const name = 'x-fal-queue-priority';
  const priority = checkField(priorityHeader, name, c.req.header(name), 'normal or low');
  const startTimeout = c.req.header('x-fal-request-timeout');
  const body = {
    ...bodyOf(input),
    model: c.req.param('app'),
    ...(priority === 'low' ? { priority: lowPriority } : {}),
    ...(startTimeout === undefined
      ? {}
      : { start_timeout_s: /\d/.test(startTimeout) ? Number(startTimeout) : startTimeout }),
  };
  const given = { value: input.enable_safety_checker, withChecker: true };
  return submitPicture(c, context, body, { names: falNames, refine: agreeOnChecker('enable_safety_checker', given) });
}

/** The path says its model too. */
function find(c: ApiCall, context: ApiContext): Promise<RequestStatus> {
  return findPicture(c, context, c.req.param('app'));
}

function urlsOf(c: ApiCall, id: string) {
  const { owner, app } = c.req.param() as { owner: string; app: string };
  const url = absoluteUrl(c, `/fal/queue/${owner}/${app}/requests/${id}`);
  return { request_id: id, response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` };
}

function headersOf(id: string) {
  return { ...noStore, [idHeader]: id };
}

function statusOf(c: ApiCall, request: RequestStatus, nowMs: number) {
  const { id, state, queuePosition, done, total, endedAtMs, startedAtMs } = request;
  const urls = urlsOf(c, id);
  if (state === 'queued') return { status: 'IN_QUEUE', ...urls, queue_position: queuePosition ?? 0 };
  const isLogged = queryOf(c, 'logs') === '1' && total > 0;
  const logs = isLogged ? [logOf({ done, total }, endedAtMs ?? nowMs)] : [];
  if (state === 'running') return { status: 'IN_PROGRESS', ...urls, logs };
  const metrics = { inference_time: secondsBetween(startedAtMs, endedAtMs) ?? null };
  return { status: 'COMPLETED', ...urls, logs, metrics, ...failureOf(request) };
}

function logOf({ done, total = 0 }: Omit<OutputProgress, 'index'>, timestampMs: number) {
  const timestamp = isoTime(timestampMs);
  return { message: progressBar(done, total), level: 'INFO', source: 'USER', timestamp };
}

/** In a status, as fal's statuses have it; nothing for a success. */
function failureOf({ state, error }: Pick<RequestStatus, 'state' | 'error'>) {
  if (state === 'failed')
    return { error: error?.message ?? 'The request failed.', error_type: error?.code ?? 'internal' };
  if (state === 'canceled') return { error: 'The request was canceled.', error_type: 'client_cancelled' };
  if (state === 'expired') return { error: 'The request did not end in time.', error_type: 'request_timeout' };
  return {};
}

/** What came of a request. */
async function answerOf(c: ApiCall, context: ApiContext, request: RequestStatus): Promise<Response> {
  c.set('requestId', request.id);
  if (request.state === 'succeeded') return c.json(await resultOf(c, context, request), 200, headersOf(request.id));
  const { error, error_type: code = '' } = failureOf(request);
  if (error === undefined) return refuse(c, 400, 'request_in_progress', 'Request is still in progress');
  return refuse(c, statusOfFailure[code] ?? failedStatus, code, error);
}

/** Not a 500, which says that asking again may help. */
const failedStatus = 424;
const statusOfFailure: Readonly<Record<string, number>> = { client_cancelled: 499, request_timeout: 504 };

/** Not for the log: what failed here has been logged where it failed. */
function refuse(c: ApiCall, status: number, code: string, message: string): Response {
  // The client sends a request again after a 504, unless it is told that the user had set the time.
  const headers: Record<string, string> = status === 504 ? { 'x-fal-request-timeout-type': 'user' } : {};
  return errorResponse(c, new ApiError(status as ContentfulStatusCode, code, message, { headers }));
}

async function resultOf(c: ApiCall, context: ApiContext, request: RequestStatus) {
  const { id, outputs, startedAtMs, endedAtMs } = request;
  const { prompt, seed } = request.input as StoredPictureInput;
  const images = outputs.map(async (output) => {
    const { contentType, bytes, width, height } = output;
    const url = await openPictureUrl(c, context, { id, output, fromMs: endedAtMs ?? context.clock.now() });
    return { url, width, height, content_type: contentType, file_size: bytes };
  });
  const timings = { inference: secondsBetween(startedAtMs, endedAtMs) ?? null };
  const found = outputs.map(({ nsfw }) => nsfw);
  const flags = found.every((nsfw) => typeof nsfw === 'boolean') ? { has_nsfw_concepts: found } : {};
  return { images: await Promise.all(images), seed, ...flags, prompt, timings };
}

type FramesOf = RequestEventsOptions['framesOf'];

/** `subscribe` in streaming mode and `queue.streamStatus`: a status for every change, with the lines of the log that are new. */
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
      yield frame({ status: 'COMPLETED', logs: [], ...failureOf({ state: event.type, error: event.error }) });
  };
}

/** `stream`: previews as they come, and the result as the last. A failure breaks the connection: the client knows no other. */
function pictureFrames(c: ApiCall, context: ApiContext, id: string): FramesOf {
  return async function* (event) {
    if (event.type === 'preview') {
      const { contentType, data, done, total } = await withPreview(context.askStore, id, event);
      if (data === undefined) return;
      const url = `data:${contentType};base64,${base64Of(data)}`;
      yield sseFrame({ data: { images: [{ url, content_type: contentType }], step: done, total_steps: total } });
    } else if (event.type === 'succeeded')
      yield sseFrame({
        data: await resultOf(c, context, await findRequest(context.askStore, id, c.get('owner'))),
      });
    else if (isEnd(event)) {
      const { error: detail, error_type } = failureOf({ state: event.type, error: event.error });
      yield sseFrame({ data: { detail, error_type } });
      throw new BrokenStream(detail);
    }
  };
}

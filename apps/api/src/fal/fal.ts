/** The view of a request that `@fal-ai/client` knows, used as it is (docs/drop-in.md). */
import type { ApiConfig } from '@darkroom/config';
import {
  type Clock,
  invalidValue,
  isoTime,
  isTerminalState,
  type OutputInfo,
  type OutputProgress,
  type RequestStatus,
} from '@darkroom/core';
import { picture, type StoredPictureInput } from '@darkroom/kinds';
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { absoluteUrl, noStore } from '../http/urls.ts';
import type { ApiEnv } from '../http/api-env.ts';
import { ApiError, type ErrorView, invalidFields } from '../http/api-error.ts';
import { addRoute, type Api } from '../http/api-route.ts';
import { errorResponse } from '../http/error-response.ts';
import { BrokenStream, type FrameOf, type StreamEvents, requestEvents } from '../follow/stream-events.ts';
import type { FollowDeps } from '../follow/tail-events.ts';
import { cancelFound, findRequest } from '../follow/find-request.ts';
import { findPicture } from '../drop-in/find-picture.ts';
import { inTheirNames, parseForeign } from '../drop-in/foreign-input.ts';
import { onceStored } from '../submit/once-stored.ts';
import { openPictureUrl } from '../drop-in/open-picture-url.ts';
import { progressBar } from '../drop-in/progress-bar.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { submitOverHttp } from '../submit/submit-over-http.ts';
import type { SubmitRequest } from '../submit/submit-request.ts';
import { awaitEnd } from '../follow/await-end.ts';
import { queryOf } from './fal-proxy.ts';
import { bodyOf, falNames, falRoutes, falSchema } from './fal-schema.ts';

type C = Context<ApiEnv>;

interface FalDeps extends FollowDeps {
  config: Pick<ApiConfig, 'maxBodyBytes' | 'requestTimeoutS'>;
  clock: Clock;
  submitRequest: SubmitRequest;
  streamEvents: StreamEvents;
}

/** The janitor ends a request a little after its deadline. */
const slackMs = 10_000;
/** How a request waits that is sent with `priority: "low"`. */
const lowPriority = 10;

export function addFalRoutes(api: Api, deps: FalDeps): void {
  addRoute(api, falRoutes.submit, async (c) => {
    const { id, position } = await submit(c, deps);
    return c.json({ status: 'IN_QUEUE', ...urlsOf(c, id), queue_position: position ?? 0 }, 200, headersOf(id));
  });
  addRoute(api, falRoutes.status, async (c) => {
    const request = await find(c, deps);
    const isEnded = isTerminalState(request.state);
    return c.json(statusOf(c, request, deps.clock.now()), isEnded ? 200 : 202, headersOf(request.id));
  });
  addRoute(api, falRoutes.streamStatus, (c) =>
    deps.streamEvents(c, async () => {
      const { id, state } = await find(c, deps);
      c.header(idHeader, id);
      return requestEvents(deps, id, {
        after: 0,
        isEnded: isTerminalState(state),
        frameOf: statusFrame(c, id),
        breaksOff: true,
      });
    }),
  );
  addRoute(api, falRoutes.result, async (c) => answerOf(c, deps, await find(c, deps)));
  addRoute(api, falRoutes.cancel, (c) => cancel(c, deps));
  addRoute(api, falRoutes.run, async (c) => {
    const { id } = await submit(c, deps);
    const waitMs = deps.config.requestTimeoutS * 1000 + slackMs;
    const { signal } = c.req.raw;
    const answer = await onceStored(async () => {
      const request = await awaitEnd(deps, id, { owner: c.get('owner'), waitMs, signal });
      return isTerminalState(request.state) ? answerOf(c, deps, request) : undefined;
    });
    return answer ?? stillOpen(c, id);
  });
  addRoute(api, falRoutes.stream, (c) =>
    deps.streamEvents(c, async () => {
      const { id } = await submit(c, deps);
      c.header(idHeader, id);
      return requestEvents(deps, id, { after: 0, isEnded: false, frameOf: pictureFrame(c, deps, id), breaksOff: true });
    }),
  );
}

const idHeader = 'x-fal-request-id';

/** FastAPI's shape for what is wrong with fields, fal's for the rest, and the message where its client looks for it. */
export const falError: ErrorView = ({ status, code, message, problems }, requestId) => {
  const detail = problems.map(({ field, code, message: msg }) => ({
    loc: field === undefined ? ['body'] : ['body', ...field.split('.')],
    msg,
    type: {
      invalid_value: 'value_error',
      missing_field: 'missing',
      unknown_field: 'extra_forbidden',
      invalid_body: 'json_invalid',
    }[code],
  }));
  return {
    status: detail.length > 0 ? 422 : status,
    body: { message, detail: detail.length > 0 ? detail : message, error_type: code },
    headers: { 'x-fal-error-type': code, ...(requestId === undefined ? {} : { [idHeader]: requestId }) },
  };
};

async function submit(c: C, deps: FalDeps) {
  const input = parseForeign(falSchema, await readJsonBody(c, deps.config.maxBodyBytes));
  const webhook = queryOf(c, 'fal_webhook');
  if (webhook !== null) throw invalidFields([invalidValue('fal_webhook', webhook, 'none: poll or subscribe instead')]);
  const priority = c.req.header('x-fal-queue-priority') ?? 'normal';
  if (priority !== 'normal' && priority !== 'low')
    throw invalidFields([invalidValue('x-fal-queue-priority', priority, 'normal or low')]);
  const startTimeout = c.req.header('x-fal-request-timeout');
  const body = {
    ...bodyOf(input),
    model: c.req.param('app'),
    ...(priority === 'low' ? { priority: lowPriority } : {}),
    ...(startTimeout === undefined
      ? {}
      : { start_timeout_s: /\d/.test(startTimeout) ? Number(startTimeout) : startTimeout }),
  };
  return inTheirNames(falNames, () => submitOverHttp(c, deps.submitRequest, { body, kind: picture.id }));
}

/** The path says its model too. */
function find(c: C, { askStore }: FalDeps): Promise<RequestStatus> {
  return findPicture(askStore, c, c.req.param('app'));
}

function urlsOf(c: C, id: string) {
  const { owner, app } = c.req.param() as { owner: string; app: string };
  const url = absoluteUrl(c, `/fal/queue/${owner}/${app}/requests/${id}`);
  return { request_id: id, response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` };
}

function headersOf(id: string) {
  return { ...noStore, [idHeader]: id };
}

function statusOf(c: C, request: RequestStatus, nowMs: number) {
  const { id, state, queuePosition, done, total, endedAtMs, startedAtMs } = request;
  const urls = urlsOf(c, id);
  if (state === 'queued') return { status: 'IN_QUEUE', ...urls, queue_position: queuePosition ?? 0 };
  const isLogged = queryOf(c, 'logs') === '1' && total > 0;
  const logs = isLogged ? [logOf({ done, total }, endedAtMs ?? nowMs)] : [];
  if (state === 'running') return { status: 'IN_PROGRESS', ...urls, logs };
  const metrics = { inference_time: secondsBetween(startedAtMs, endedAtMs) };
  return { status: 'COMPLETED', ...urls, logs, metrics, ...failureOf(request) };
}

function logOf({ done, total = 0 }: Omit<OutputProgress, 'index'>, timestampMs: number) {
  const timestamp = isoTime(timestampMs);
  return { message: progressBar(done, total), level: 'INFO', source: 'USER', timestamp };
}

function secondsBetween(fromMs: number | undefined, toMs: number | undefined): number | null {
  return fromMs === undefined || toMs === undefined ? null : (toMs - fromMs) / 1000;
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
async function answerOf(c: C, deps: FalDeps, request: RequestStatus): Promise<Response> {
  c.set('requestId', request.id);
  if (request.state === 'succeeded') return c.json(await resultOf(c, deps, request), 200, headersOf(request.id));
  const { error, error_type: code = '' } = failureOf(request);
  if (error === undefined) return refuse(c, 400, 'request_in_progress', 'Request is still in progress');
  return refuse(c, statusOfFailure[code] ?? failedStatus, code, error);
}

/** Not a 500, which says that asking again may help. */
const failedStatus = 424;
const statusOfFailure: Readonly<Record<string, number>> = { client_cancelled: 499, request_timeout: 504 };

/** Not for the log: what failed here has been logged where it failed. */
function refuse(c: C, status: number, code: string, message: string): Response {
  // The client sends a request again after a 504, unless it is told that the user had set the time.
  const headers: Record<string, string> = status === 504 ? { 'x-fal-request-timeout-type': 'user' } : {};
  return errorResponse(c, new ApiError({ status: status as ContentfulStatusCode, code, message, headers }));
}

/** Neither a 5xx nor a 429: after those the client would send a second request. */
function stillOpen(c: C, id: string): Response {
  return refuse(c, 408, 'still_open', `Request ${id} goes on: fetch its result from the queue.`);
}

async function resultOf(c: C, deps: FalDeps, { id, input, outputs, startedAtMs, endedAtMs }: RequestStatus) {
  const { prompt, seed } = input as StoredPictureInput;
  const images = await Promise.all(outputs.map((output) => imageOf(c, deps, id, output)));
  return { images, seed, prompt, timings: { inference: secondsBetween(startedAtMs, endedAtMs) } };
}

async function imageOf(c: C, deps: FalDeps, id: string, output: OutputInfo) {
  const { contentType, bytes, width, height } = output;
  const url = await openPictureUrl(c, deps.askStore, { id, output });
  return { url, width, height, content_type: contentType, file_size: bytes };
}

const stopping = 'This server stops; the request goes on.';

function dataFrame(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** `subscribe` in streaming mode and `queue.streamStatus`: a status for every change, with the lines of the log that are new. */
function statusFrame(c: C, id: string): FrameOf {
  const urls = urlsOf(c, id);
  const isLogged = queryOf(c, 'logs') === '1';
  const frame = (status: object): string => dataFrame({ ...status, ...urls });
  return async (item) => {
    if (item === 'heartbeat') return ': heartbeat\n\n';
    if (item === 'draining') throw new BrokenStream(stopping);
    if (item === 'done') return '';
    switch (item.type) {
      case 'queued':
        return frame({ status: 'IN_QUEUE', queue_position: item.position });
      case 'started':
        return frame({ status: 'IN_PROGRESS', logs: [] });
      case 'progress':
      case 'preview':
        if (!isLogged) return '';
        return frame({ status: 'IN_PROGRESS', logs: [logOf(item, item.timestampMs)] });
      case 'output':
      case 'delta':
      case 'snapshot':
      case 'reset':
        return '';
      case 'succeeded':
      case 'failed':
      case 'canceled':
      case 'expired':
        return frame({ status: 'COMPLETED', logs: [], ...failureOf({ state: item.type, error: item.error }) });
    }
  };
}

/** `stream`: previews as they come, and the result as the last. A failure breaks the connection: the client knows no other. */
function pictureFrame(c: C, deps: FalDeps, id: string): FrameOf {
  let failure: string | undefined;
  return async (item) => {
    if (item === 'heartbeat') return ': heartbeat\n\n';
    if (item === 'done' && failure !== undefined) throw new BrokenStream(failure);
    if (item === 'draining') throw new BrokenStream(stopping);
    if (item === 'done') return '';
    if (item.type === 'preview') {
      const { contentType, data, done, total } = item;
      if (data === undefined) return '';
      const url = `data:${contentType};base64,${Buffer.from(data).toString('base64')}`;
      return dataFrame({ images: [{ url, content_type: contentType }], step: done, total_steps: total });
    }
    if (item.type === 'succeeded')
      return dataFrame(await resultOf(c, deps, await findRequest(deps.askStore, id, c.get('owner'))));
    if (item.type !== 'failed' && item.type !== 'canceled' && item.type !== 'expired') return '';
    const { error, error_type } = failureOf({ state: item.type, error: item.error });
    failure = error;
    return dataFrame({ detail: error, error_type });
  };
}

async function cancel(c: C, deps: FalDeps): Promise<Response> {
  const { id } = await find(c, deps);
  const result = await cancelFound(deps, id, c.get('owner'));
  if (result.status !== 'ended') return c.json({ status: 'CANCELLATION_REQUESTED' }, 202, headersOf(id));
  return c.json({ status: 'ALREADY_COMPLETED', message: `The request is ${result.state}.` }, 400, headersOf(id));
}

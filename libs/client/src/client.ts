import {
  type AcceptedRequest,
  type CanceledRequest,
  type EndedRequest,
  isEnded,
  type Model,
  type Image,
  type PinnedRequest,
  type RequestSummary,
  type RequestView,
} from './answers.ts';
import { ClientError, isResponseLost } from './client-error.ts';
import { requestPath, retrying, sendForJson } from './http.ts';
import { type Call, type ClientOptions, type SignalOptions, type SubmitOptions, withDefaults } from './options.ts';
import { fetchFile, fetchImage } from './images.ts';
import { listRequests, type ListOptions } from './list-requests.ts';
import type { AnyRequestId, ImageRequest, RequestKind, TextRequest } from './requests.ts';
import type { RequestEvent } from './stream-event.ts';
import { streamRequest } from './stream.ts';
import type { Submit } from './submit.ts';

export interface StreamOptions extends SignalOptions {
  /** Id of the last event seen: only later events are yielded. Default: all events. */
  after?: string | undefined;
}

/** Seconds of a long poll: many proxies cut a silent connection after 30 or 60. */
const longPollS = 25;
/** Seconds between polls if the server sends no `Retry-After`. */
const pollEveryS = 1;

/** All functions throw {@link ClientError}, or their signal's reason. All but `call` retry automatically. */
export type Client = ReturnType<typeof createClient>;

/**
 * Creates a client of a Darkroom API. It holds no connection and needs no closing.
 *
 * @example
 *   const client = createClient({ baseUrl: 'http://127.0.0.1:8080', apiKey: 'sk-…' });
 *   const { request_id } = await client.submit({ prompt: 'a red apple' });
 */
export function createClient(options: ClientOptions) {
  const defaults = withDefaults(options);
  const callOf = ({ signal }: SignalOptions = {}): Call => ({ ...defaults, signal });
  return {
    /**
     * Returns the models and their limits.
     *
     * @example
     *   const ids = (await client.models()).filter(({ kind }) => kind === 'image').map(({ id }) => id);
     */
    models: async (given?: SignalOptions): Promise<Model[]> =>
      (await getJson<{ data: Model[] }>(callOf(given), '/v1/models')).data,
    /**
     * Submits a request for images or texts; resolves when it is queued. Retried if the response is lost, and stored
     * only once.
     *
     * @example
     *   const { request_id } = await client.submit({ prompt: 'a red apple', size: '64x64', seed: 7 });
     */
    submit: ((request: ImageRequest | TextRequest, given?: SubmitOptions): Promise<AcceptedRequest> =>
      submitRequest(callOf(given), request, given?.idempotencyKey)) as Submit,
    /**
     * Returns a request's state. 404: it never existed; 410: it expired.
     *
     * @example
     *   const { status, queue_position } = await client.get(id);
     */
    get: <Kind extends RequestKind = RequestKind>(
      id: AnyRequestId<Kind>,
      given?: SignalOptions,
    ): Promise<RequestView<Kind>> => getJson(callOf(given), requestPath(id)),
    /**
     * Yields the stored requests of this client's key, newest first. Fetches a page when the loop gets there.
     *
     * @example
     *   for await (const { prompt } of client.list({ status: ['succeeded'] })) console.log(prompt);
     */
    list: (given: ListOptions = {}): AsyncGenerator<RequestSummary, void> => listRequests(callOf(given), given),
    /**
     * Resolves when the request has ended, with any final `status`. The result contains the texts.
     *
     * @example
     *   const messages = [{ role: 'user', content: 'a fruit' }];
     *   const { request_id } = await client.submit({ model: 'emoji-writer', messages });
     *   const { status, texts } = await client.wait(request_id);
     */
    wait: <Kind extends RequestKind = RequestKind>(
      id: AnyRequestId<Kind>,
      given?: SignalOptions,
    ): Promise<EndedRequest<Kind>> => awaitEnd(callOf(given), requestPath(id)) as Promise<EndedRequest<Kind>>,
    /**
     * Yields the request's events in order, each once, across broken connections and server restarts. Images are
     * complete, and each chunk of a text comes once. Ends after one of `succeeded`, `failed`, `canceled` and `expired`;
     * leaving the loop cancels nothing. The id from `submit`, or `stream<'text'>(id)`, narrows the event types.
     *
     * @example
     *   for await (const event of client.stream(id)) {
     *     if (event.type === 'progress') console.log(event.step ?? event.tokens);
     *     if (event.type === 'image') console.log(event.url, event.data.length);
     *   }
     */
    stream: <Kind extends RequestKind = RequestKind>(
      id: AnyRequestId<Kind>,
      given?: StreamOptions,
    ): AsyncGenerator<RequestEvent<Kind>, void> =>
      streamRequest(callOf(given), id, given?.after) as AsyncGenerator<RequestEvent<Kind>, void>,
    /**
     * Cancels a request. `canceled`: it was queued; `canceling`: it runs and stops at its next step. 409: it has ended.
     *
     * @example
     *   const { status } = await client.cancel(id);
     */
    cancel: (id: string, given?: SignalOptions): Promise<CanceledRequest> => cancelRequest(callOf(given), id),
    /**
     * Returns the finished images with their bytes; after `wait`, all of them.
     *
     * @example
     *   const images = await client.images(id);
     *   const blobs = images.map(({ data, content_type }) => new Blob([data], { type: content_type }));
     */
    async images(id: string, given?: SignalOptions): Promise<Image[]> {
      const call = callOf(given);
      const { images = [] } = await getJson<RequestView>(call, requestPath(id));
      return Promise.all(images.map((image) => fetchImage(call, image)));
    },
    /**
     * Returns a request's input image, fitted to the output size. 404: there is none, or it was deleted.
     *
     * @example
     *   const mask = await client.input(id, 'mask');
     */
    input: (id: string, name: 'image' | 'mask' | `image-${number}`, given?: SignalOptions): Promise<Blob> =>
      fetchFile(callOf(given), `${requestPath(id)}/inputs/${name}`),
    /**
     * Returns a ZIP file of the finished images of at most 100 requests.
     *
     * @example
     *   const file = await client.zip([id]);
     */
    zip: (ids: readonly string[], given?: SignalOptions): Promise<Blob> =>
      fetchFile(callOf(given), `/v1/predict/zip?ids=${encodeURIComponent(ids.join(','))}`),
    /**
     * Retains an ended request until 30 days after its end. 409: it has not ended.
     *
     * @example
     *   const { expires_at } = await client.pin(id);
     */
    pin: (id: string, given?: SignalOptions): Promise<PinnedRequest> => setPin(callOf(given), id, 'PUT'),
    /** Retains a request no longer than others. */
    unpin: (id: string, given?: SignalOptions): Promise<PinnedRequest> => setPin(callOf(given), id, 'DELETE'),
    /**
     * Calls a path of the API that has no function here, such as `/status`; tries once. `body`: sent as JSON.
     *
     * @example
     *   const { workers } = await client.call<SystemStatus>('GET', '/status');
     */
    async call<Body>(
      method: 'GET' | 'POST' | 'DELETE',
      path: string,
      { body, ...given }: SignalOptions & { body?: object } = {},
    ): Promise<Body> {
      const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
      return (await sendForJson<Body>(callOf(given), path, { method, ...json })).body;
    },
  };
}

async function setPin(call: Call, id: string, method: 'PUT' | 'DELETE'): Promise<PinnedRequest> {
  const path = `${requestPath(id)}/pin`;
  return (await retrying(call, () => sendForJson<PinnedRequest>(call, path, { method }))).body;
}

async function getJson<Body>(call: Call, path: string): Promise<Body> {
  return (await retrying(call, () => sendForJson<Body>(call, path))).body;
}

/**
 * Submits a request. Retries if the response is lost: the key makes all tries one request. A refusal (503, 429) is
 * thrown immediately.
 */
async function submitRequest(
  call: Call,
  request: ImageRequest | TextRequest,
  key = drawIdempotencyKey(),
): Promise<AcceptedRequest> {
  const body = bodyOf(request);
  const type: Record<string, string> = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
  const options = { method: 'POST', headers: { ...type, 'idempotency-key': key }, body } as const;
  const attempt = () => sendForJson<AcceptedRequest>(call, '/v1/predict', options);
  return (await retrying(call, attempt, isResponseLost)).body;
}

/** Returns JSON, or a form if there are files, with the other fields as JSON. */
function bodyOf(request: ImageRequest | TextRequest): string | FormData {
  const fields = Object.entries(request).filter(([, value]) => value !== undefined && value !== null);
  if (!fields.some(([, value]) => value instanceof Blob)) return JSON.stringify(request);
  const form = new FormData();
  for (const [name, value] of fields) {
    const isRaw = typeof value === 'string' || value instanceof Blob;
    form.set(name, isRaw ? value : JSON.stringify(value));
  }
  return form;
}

/**
 * Draws 128 random bits, for `submit`: store the key first, and a submission survives a restart of your program. Unlike
 * `crypto.randomUUID`, it works on pages without TLS.
 *
 * @example
 *   const idempotencyKey = drawIdempotencyKey();
 *   await client.submit({ prompt: 'a red apple' }, { idempotencyKey });
 */
export function drawIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Waits for the end with long polls, which carry neither previews nor images. */
async function awaitEnd(call: Call, path: string): Promise<EndedRequest> {
  for (;;) {
    const { body, retryAfterS = pollEveryS } = await retrying(call, (failures) =>
      // A proxy may cut the long poll; after a failure, use a short poll.
      failures > 0
        ? sendForJson<RequestView>(call, path)
        : sendForJson<RequestView>(call, `${path}?wait=${longPollS}`, { responseDelayMs: longPollS * 1000 }),
    );
    if (isEnded(body)) return body;
    await call.delay(retryAfterS * 1000, call.signal);
  }
}

/**
 * Cancels a request. Retries if the response is lost, because canceling is idempotent. After a retry, a 409 may result
 * from the first try.
 */
async function cancelRequest(call: Call, id: string): Promise<CanceledRequest> {
  let tries = 0;
  const attempt = (failures: number) => {
    tries = failures + 1;
    return sendForJson<CanceledRequest>(call, requestPath(id), { method: 'DELETE' });
  };
  try {
    return (await retrying(call, attempt)).body;
  } catch (error) {
    if (tries === 1 || !(error instanceof ClientError) || error.status !== 409) throw error;
    const { status } = await getJson<RequestView>(call, requestPath(id));
    if (status === 'canceled') return { request_id: id, status };
    throw error;
  }
}

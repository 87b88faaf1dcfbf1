import {
  type AcceptedRequest,
  type CanceledRequest,
  type EndedRequest,
  isEnded,
  type Model,
  type Picture,
  type RequestView,
} from './answers.ts';
import { ClientError, isAnswerLost } from './client-error.ts';
import { requestPath, retrying, sendForJson } from './http.ts';
import { type Call, type ClientOptions, withDefaults } from './options.ts';
import type { PictureRequest } from './pictures/picture-request.ts';
import { fetchInput, fetchPicture } from './pictures/pictures.ts';
import type { RequestEvent } from './stream-event.ts';
import { streamRequest } from './stream.ts';
import type { TextRequest } from './texts/text-request.ts';

export interface SignalOptions {
  /** Ends the call, which throws the signal's reason. It cancels nothing: that is `cancel`. */
  signal?: AbortSignal | undefined;
}

export interface SubmitOptions extends SignalOptions {
  /** Two submits of the same key and request are one. Default: drawn anew for each call. */
  idempotencyKey?: string | undefined;
}

export interface StreamOptions extends SignalOptions {
  /** Id of the last event seen: only what came after it. Default: all from the first. */
  after?: string | undefined;
}

/** Seconds for which `wait` leaves a connection silent: many proxies cut it after 30 or 60. */
const longPollS = 25;
/** Seconds between polls when the server names none. */
const pollEveryS = 1;

/** Every function throws {@link ClientError}, or the reason of its signal. All but `ask` try again by themselves. */
export type Client = ReturnType<typeof createClient>;

/** A client of a Darkroom API. Holds no connection and needs no closing. */
export function createClient(options: ClientOptions) {
  const defaults = withDefaults(options);
  const callOf = ({ signal }: SignalOptions = {}): Call => ({ ...defaults, signal });
  return {
    /** The models and their limits. */
    models: async (given?: SignalOptions): Promise<Model[]> =>
      (await getJson<{ data: Model[] }>(callOf(given), '/v1/models')).data,
    /** Asks for pictures or texts; resolves at once. Tried again when an answer gets lost, and stored once. */
    submit: (request: PictureRequest | TextRequest, given?: SubmitOptions): Promise<AcceptedRequest> =>
      submitRequest(callOf(given), request, given?.idempotencyKey),
    /** Where a request is. 404: there is none; 410: its time is over. */
    get: (id: string, given?: SignalOptions): Promise<RequestView> => getJson(callOf(given), requestPath(id)),
    /** Resolves when the request has ended, whichever way: look at its `status`. Texts are in it. */
    wait: (id: string, given?: SignalOptions): Promise<EndedRequest> => awaitEnd(callOf(given), requestPath(id)),
    /**
     * The request's events, each once and none left out, over broken connections and restarted servers, with whole
     * pictures and each piece of a text once; over after one of `succeeded`, `failed`, `canceled` and `expired`. Leaving the loop cancels nothing.
     */
    stream: (id: string, given?: StreamOptions): AsyncGenerator<RequestEvent, void> =>
      streamRequest(callOf(given), id, given?.after),
    /** Waiting: `canceled`; running: `canceling`, it leaves at its next step. 409: it has ended. */
    cancel: (id: string, given?: SignalOptions): Promise<CanceledRequest> => cancelRequest(callOf(given), id),
    /** The pictures that are done, with their bytes; all of them after `wait`. */
    async images(id: string, given?: SignalOptions): Promise<Picture[]> {
      const call = callOf(given);
      const { images = [] } = await getJson<RequestView>(call, requestPath(id));
      return Promise.all(images.map((image) => fetchPicture(call, image)));
    },
    /** A picture that a request began with, as it was fitted to the size that is drawn. 404: there is none (any more). */
    input: (id: string, name: 'image' | 'mask', given?: SignalOptions): Promise<Blob> =>
      fetchInput(callOf(given), `${requestPath(id)}/inputs/${name}`),
    /** What the API answers at a path that has no function here, such as `/status`; tried once. */
    ask: async <Body>(method: 'GET' | 'POST', path: string, given?: SignalOptions): Promise<Body> =>
      (await sendForJson<Body>(callOf(given), path, { method })).body,
  };
}

async function getJson<Body>(call: Call, path: string): Promise<Body> {
  return (await retrying(call, () => sendForJson<Body>(call, path))).body;
}

/** Tried again when the answer got lost: the key makes all tries one request. A refusal (503, 429) is thrown at once. */
async function submitRequest(
  call: Call,
  request: PictureRequest | TextRequest,
  key = randomKey(),
): Promise<AcceptedRequest> {
  const body = bodyOf(request);
  const type: Record<string, string> = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
  const options = { method: 'POST', headers: { ...type, 'idempotency-key': key }, body } as const;
  const attempt = () => sendForJson<AcceptedRequest>(call, '/v1/predict', options);
  return (await retrying(call, attempt, isAnswerLost)).body;
}

/** JSON; a form where there are files, with the other fields as JSON. */
function bodyOf(request: PictureRequest | TextRequest): string | FormData {
  const fields = Object.entries(request).filter(([, value]) => value !== undefined);
  if (!fields.some(([, value]) => value instanceof Blob)) return JSON.stringify(request);
  const form = new FormData();
  for (const [name, value] of fields) {
    const isAsItIs = typeof value === 'string' || value instanceof Blob;
    form.set(name, isAsItIs ? value : JSON.stringify(value));
  }
  return form;
}

/** 128 random bits. `crypto.randomUUID` is not there on pages without TLS. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Long polls, which bring neither previews nor pictures. */
async function awaitEnd(call: Call, path: string): Promise<EndedRequest> {
  for (;;) {
    const { body, retryAfterS = pollEveryS } = await retrying(call, (failures) =>
      // Something in between may have less patience than this one; then short polls do the same soon enough.
      failures > 0
        ? sendForJson<RequestView>(call, path)
        : sendForJson<RequestView>(call, `${path}?wait=${longPollS}`, { heldBackMs: longPollS * 1000 }),
    );
    if (isEnded(body)) return body;
    await call.delay(retryAfterS * 1000, call.signal);
  }
}

/** Canceling twice is canceling once, so a lost answer is asked for again; a 409 then may be our own doing. */
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

import type { AcceptedRequest, CanceledRequest, EndedRequest, Model, Picture, RequestView } from './answers.ts';
import { awaitEnd, cancelRequest, getRequest, listModels, submitRequest } from './calls.ts';
import { type Call, type ClientOptions, withDefaults } from './options.ts';
import type { PictureRequest } from './picture-request.ts';
import { fetchPicture } from './pictures.ts';
import type { RequestEvent } from './stream-event.ts';
import { streamRequest } from './stream.ts';

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

/** Every function throws {@link ClientError}, or the reason of its signal. All try again by themselves. */
export interface Client {
  /** The models and their limits. */
  models(options?: SignalOptions): Promise<Model[]>;
  /** Asks for pictures; resolves at once. Tried again when an answer gets lost, and stored once. */
  submit(request: PictureRequest, options?: SubmitOptions): Promise<AcceptedRequest>;
  /** Where a request is. 404: there is none; 410: its time is over. */
  get(id: string, options?: SignalOptions): Promise<RequestView>;
  /** Resolves when the request has ended, whichever way: look at its `status`. */
  wait(id: string, options?: SignalOptions): Promise<EndedRequest>;
  /**
   * The request's events, each once and none left out, over broken connections and restarted servers, with whole
   * pictures; over after one of `succeeded`, `failed`, `canceled` and `expired`. Leaving the loop cancels nothing.
   */
  stream(id: string, options?: StreamOptions): AsyncGenerator<RequestEvent, void>;
  /** Waiting: `canceled`; running: `canceling`, it leaves at its next step. 409: it has ended. */
  cancel(id: string, options?: SignalOptions): Promise<CanceledRequest>;
  /** The pictures that are done, with their bytes; all of them after `wait`. */
  images(id: string, options?: SignalOptions): Promise<Picture[]>;
}

/** A client of a Darkroom API. Holds no connection and needs no closing. */
export function createClient(options: ClientOptions): Client {
  const defaults = withDefaults(options);
  const callOf = ({ signal }: SignalOptions = {}): Call => ({ ...defaults, signal });
  return {
    models: (given) => listModels(callOf(given)),
    submit: (request, given) => submitRequest(callOf(given), request, given?.idempotencyKey),
    get: (id, given) => getRequest(callOf(given), id),
    wait: (id, given) => awaitEnd(callOf(given), id),
    stream: (id, given) => streamRequest(callOf(given), id, given?.after),
    cancel: (id, given) => cancelRequest(callOf(given), id),
    async images(id, given) {
      const call = callOf(given);
      const { images } = await getRequest(call, id);
      return Promise.all(images.map((image) => fetchPicture(call, image)));
    },
  };
}

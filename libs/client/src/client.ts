import { cancelRequest } from './cancel-request.ts';
import { createContext } from './client-context.ts';
import type { ClientOptions } from './client-options.ts';
import { fetchPicture } from './fetch-picture.ts';
import { listModels } from './list-models.ts';
import type { Model } from './model.ts';
import { pollRequest } from './poll-request.ts';
import type { PictureRequest } from './picture-request.ts';
import type { Picture } from './picture.ts';
import type { RequestEvent } from './request-event.ts';
import type { AcceptedRequest, CanceledRequest, EndedRequest, RequestView } from './request-view.ts';
import { streamRequest } from './stream-request.ts';
import { type SubmitOptions, submitRequest } from './submit-request.ts';
import { waitForEnd } from './wait-for-end.ts';

export interface SignalOptions {
  /** Ends the call, which throws the signal's reason. It cancels nothing: that is `cancel`. */
  signal?: AbortSignal | undefined;
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
  const context = createContext(options);
  return {
    models: ({ signal } = {}) => listModels(context, signal),
    submit: (request, options = {}) => submitRequest(context, request, options),
    get: async (id, { signal } = {}) => (await pollRequest(context, id, signal)).request,
    wait: (id, { signal } = {}) => waitForEnd(context, id, signal),
    stream: (id, { after, signal } = {}) => streamRequest(context, id, { after, signal }),
    cancel: (id, { signal } = {}) => cancelRequest(context, id, signal),
    async images(id, { signal } = {}) {
      const { request } = await pollRequest(context, id, signal);
      return Promise.all(request.images.map((image) => fetchPicture(context, image, signal)));
    },
  };
}

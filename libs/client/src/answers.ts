/** Responses of the API, by the kind of the request or model. */
import type * as Api from './api-types.ts';
import type { RequestId, RequestKind } from './requests.ts';

/** The result of `submit`. Its `status` is `queued`, unless the idempotency key found an earlier submission. */
export interface AcceptedRequest<Kind extends RequestKind = RequestKind> extends Omit<Api.Accepted, 'request_id'> {
  /** Its type contains the request's kind, if `submit` could infer it. */
  request_id: RequestId<Kind>;
}

/** The result of `cancel`. `canceling`: the request stops at its next step. */
export type CanceledRequest = Api.Cancel;

/** The result of `pin` and `unpin`. */
export type PinnedRequest = Api.Pin;

/** A finished image, without its bytes. `url` is a path below the client's `baseUrl`. */
export type ImageInfo = Api.Image;

/** A finished image. */
export interface Image extends ImageInfo {
  /** The encoded image: `bytes` bytes of the type `content_type`. */
  data: Uint8Array<ArrayBuffer>;
}

/** A request for images, as returned by `get`. Times are ISO 8601. */
export interface ImageView extends Api.ImageStatus {
  texts?: undefined;
}
/** The parameters of a request for images, including defaults. Submitted again, they make the same images. */
export type ImageParameters = ImageView['parameters'];

/** A request for texts, as returned by `get`. Times are ISO 8601. */
export interface TextView extends Api.TextStatus {
  images?: undefined;
}
/** The parameters of a request for texts, including defaults. Submitted again, they make the same texts. */
export type TextParameters = TextView['parameters'];
/** A finished or partial text. While a block is being written, `░` stands for an unknown token. */
export type WrittenText = TextView['texts'][number];
/** A tool call in a text. */
export type ToolCall = NonNullable<WrittenText['tool_calls']>[number];
/** Token counts of a request's finished texts. */
export type TextUsage = TextView['usage'];
/** `stop`: the text ended by itself or with a stop text. `length`: it reached `max_tokens` or `max_nfe`. */
export type FinishReason = TextView['finish_reasons'][number];

/** The type that `get` returns, by the request's kind. */
export interface ViewOfKind {
  image: ImageView;
  text: TextView;
}

/** A request, as returned by `get`. Requests for images have `images`, for texts `texts`; narrow the type by `kind`. */
export type RequestView<Kind extends RequestKind = RequestKind> = ViewOfKind[Kind];

/** A request in a list. `images`: finished ones, only of a request for images. Times are ISO 8601. */
export interface RequestSummary extends Api.RequestSummary {}

/** The state of a request. */
export type RequestStatus = RequestView['status'];
/** The terminal states of a request. */
export type EndedStatus = Exclude<RequestStatus, 'queued' | 'running'>;
/** Paths below the client's `baseUrl`. */
export type RequestUrls = RequestView['urls'];
/** Estimated seconds from now until a request ends. */
export type EtaSeconds = NonNullable<RequestView['eta_seconds']>;
/** The reason why a request failed: a stable code for programs, such as `worker_lost`, and a message for users. */
export type RequestFailure = Api.Failure;

/** A request in a final state. */
export type EndedRequest<Kind extends RequestKind = RequestKind> = RequestView<Kind> & { status: EndedStatus };

/**
 * Returns true if the request is in a final state.
 *
 * @example
 *   const request = await client.get(id);
 *   if (isEnded(request)) console.log(request.status, request.ended_at);
 */
export function isEnded(request: RequestView): request is EndedRequest {
  return request.status !== 'queued' && request.status !== 'running';
}

/** An image model and its limits. */
export interface ImageModel extends Api.ImageModel {}
/** A text model and its limits. */
export interface TextModel extends Api.TextModel {}
/** An entry of `/v1/models`. */
export type Model = ImageModel | TextModel;
/** The workers and queues, as `client.call('GET', '/status')` returns them. */
export interface SystemStatus extends Api.Status {}
/** Failed requests that operators can retry, as `client.call('GET', '/admin/dead-requests')` returns them. */
export interface DeadRequestList extends Api.DeadRequestList {}

/** An adapter of a model. */
export type ModelLora = NonNullable<ImageModel['loras']>[number];

/** Why a request failed, for operators, as `client.call('GET', '/admin/requests/<id>')` returns it. */
export interface FailedAttempt extends Api.FailedAttempt {}

/** API keys without the keys themselves, as `client.call('GET', '/admin/keys')` returns them. */
export interface KeyList extends Api.KeyList {}

/** Name and limits of a key to add with `client.call('POST', '/admin/keys', …)`. */
export interface NewKey extends Api.NewKey {}

/** An added key, which is shown only once. */
export interface AddedKey extends Api.AddedKey {}

/** Bodies of `POST /v1/predict`, and ids whose types contain the kind of the request. */
import type * as Api from './api-types.ts';

/** Fields that a body may omit are omitted, and not null. */
type WithoutNull<Body> = { [Field in keyof Body]: Exclude<Body[Field], null> };

/** A request for images. Limits named "the model's" are in `/v1/models`. */
export interface ImageRequest extends Omit<
  WithoutNull<Api.ImageRequest>,
  'image' | 'mask' | 'metadata' | 'user' // for clients of other APIs
> {
  /**
   * The input image, for models whose `takes` contains it: a file, a data URL, an https URL that the server fetches,
   * or the `url` of one of your images on the server. With `size: 'auto'`, the output has its size.
   */
  image?: string | Blob | null;
  /** The area to repaint: white there, black where `image` is preserved; of the same size as `image`. */
  mask?: string | Blob | null;
  /** Writes the recipe into the file, for `readMetadata` and other tools. Default: `false`. */
  metadata?: boolean;
}

/** A request for texts, with `prompt` or `messages`. Limits named "the model's" are in `/v1/models`. */
export interface TextRequest extends Omit<WithoutNull<Api.TextRequest>, 'image' | 'metadata' | 'user'> {
  /** An image to ask about in `prompt`, for models whose `takes` contains it: as in `ImageRequest`. */
  image?: string | Blob | null;
}

/** Fields of a request of any kind. */
export type RequestOptions = Pick<
  ImageRequest,
  'model' | 'priority' | 'timeout_s' | 'start_timeout_s' | 'webhook_url' | 'webhook_events'
>;

/** File format of images. */
export type OutputFormat = NonNullable<ImageRequest['output_format']>;
/** Sends a small preview every so many steps, or none. */
export type PreviewRequest = NonNullable<ImageRequest['preview']>;
/** A message of a conversation. Other fields are passed to the model's template. */
export type TextMessage = NonNullable<TextRequest['messages']>[number];
export type ResponseFormat = NonNullable<TextRequest['response_format']>;
export type Tool = NonNullable<TextRequest['tools']>[number];
export type ToolChoice = NonNullable<TextRequest['tool_choice']>;
/** A tool call in an earlier message. */
export type SentToolCall = NonNullable<TextMessage['tool_calls']>[number];

/** The body of `POST /v1/predict` by kind. */
export interface RequestOfKind {
  image: ImageRequest;
  text: TextRequest;
}

/** `image` or `text`, the field `kind` of models and requests. */
export type RequestKind = keyof RequestOfKind;

/** Exists in types only: at runtime, an id is a string. */
declare const kind: unique symbol;

/** An id whose type contains the request's kind; a plain `string` if the kind is unknown. */
export type RequestId<Kind extends RequestKind = RequestKind> = RequestKind extends Kind
  ? string
  : string & { readonly [kind]?: Kind };

/** An id argument of `stream`, `get` and `wait`: any string. An id whose type contains the kind narrows the result. */
export type AnyRequestId<Kind extends RequestKind> = string | (string & { readonly [kind]?: Kind });

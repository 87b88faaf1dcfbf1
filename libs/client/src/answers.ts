/** What the API answers. */
import type { EndedStatus, ModelBase, Range, RequestViewBase } from './base-answers.ts';
import type { PictureRequest } from './pictures/picture-request.ts';
import type { RequestOptions } from './request-options.ts';
import type { TextModel, TextView } from './texts/text-answers.ts';

/** What `submit` resolves to; its `status` is `queued`, unless its idempotency key found an earlier submit. */
export type AcceptedRequest = Pick<
  RequestViewBase,
  'request_id' | 'status' | 'queue_position' | 'eta_seconds' | 'is_possible' | 'urls'
>;

/** What `cancel` resolves to: `canceling` leaves at its next step. */
export interface CanceledRequest {
  request_id: string;
  status: 'canceled' | 'canceling';
}

/** A finished picture, without its bytes. */
export interface ImageInfo {
  /** From 0. */
  index: number;
  /** A path below the client's `baseUrl`. */
  url: string;
  seed: number;
  /** Pixels, as is `height`. */
  width: number;
  height: number;
  /** Such as `image/png`. */
  content_type: string;
  /** Size of the encoded picture. */
  bytes: number;
}

/** A finished picture. */
export interface Picture extends ImageInfo {
  /** The encoded picture, `bytes` long: a file of the type `content_type`. */
  data: Uint8Array<ArrayBuffer>;
}

/** All that made the pictures: submitted again, it makes the same ones. */
export interface PictureParameters extends Required<
  Omit<PictureRequest, 'prompt' | 'negative_prompt' | 'output' | 'loras' | Exclude<keyof RequestOptions, 'model'>>
> {
  /** Null once the request has ended, on a server that does not keep prompts. */
  prompt: string | null;
  negative_prompt: string | null;
  /** Absent where there are none. */
  loras?: NonNullable<PictureRequest['loras']>;
}

/** A request of pictures as `get` sees it. */
export interface PictureView extends RequestViewBase {
  kind: 'picture';
  /** Steps done, over all pictures of the request. */
  step: number;
  total_steps: number;
  /** One per picture. */
  seeds: number[];
  parameters: PictureParameters;
  /** Tokens at the prompt's end that the model did not read, because it reads no more; null before a picture is done. */
  prompt_tokens_cut: number | null;
  /** The same of the negative prompt; 0 where guidance makes no use of it. */
  negative_prompt_tokens_cut: number | null;
  /** Those that are done. */
  images: ImageInfo[];
  texts?: undefined;
}

/** A request as `get` sees it: of pictures, which has `images`, or of texts, which has `texts`; `kind` says which. */
export type RequestView = PictureView | TextView;

/** A request after which nothing follows. */
export type EndedRequest = RequestView & { status: EndedStatus };

/** Whether nothing follows. */
export function isEnded(request: RequestView): request is EndedRequest {
  return request.status !== 'queued' && request.status !== 'running';
}

/** A model of pictures, and what it can do. */
export interface PictureModel extends ModelBase {
  kind: 'picture';
  /** Pixels: width and height are multiples of `multiple`, from `min` to `max`. */
  sizes: Range & { multiple: number };
  steps: Range;
  guidance: Range;
  /** What `scheduler` takes. */
  schedulers: string[];
  /** What is longer is cut. */
  max_prompt_tokens: number;
  /** What `loras` takes; absent where there are none. */
  loras?: { id: string; rank: number }[];
  defaults: { size: string; num_inference_steps: number; guidance_scale: number; scheduler: string };
}

/** A model of `/v1/models`. */
export type Model = PictureModel | TextModel;

/** Public interface of a custom module: docs/executors.md. */
import type { ImageInput, UpstreamTextInput } from '@darkroom/kinds';

/**
 * The one required export of a custom module. Do slow setup here, such as loading a model.
 *
 * @example
 *   export const createExecutor: CreateTextExecutor = () => ({
 *     card: { kind: 'text', maxModelTokens: 4096 },
 *     slots: 4,
 *     async *run({ input }, signal) {
 *       const words = String(input.params.prompt).split(' ').slice(0, input.maxTokens);
 *       for (const word of words) {
 *         signal.throwIfAborted();
 *         yield `${word} `;
 *       }
 *       return { finishReason: 'stop', promptTokens: words.length };
 *     },
 *   });
 *
 * @example
 *   export const createExecutor: CreateImageExecutor = () => ({
 *     card: { kind: 'image', steps: { min: 1, max: 50, default: 20 } },
 *     async *run({ seed, input }) {
 *       const data = new Uint8Array(input.width * input.height * 3).fill(seed % 256);
 *       for (let step = 1; step <= input.numInferenceSteps; step++) yield { step };
 *       return { data };
 *     },
 *   });
 */
export type CreateExecutor<Executor extends OwnExecutor = OwnExecutor> = (
  options: OwnExecutorOptions,
) => Executor | Promise<Executor>;
export type CreateTextExecutor = CreateExecutor<OwnTextExecutor>;
export type CreateImageExecutor = CreateExecutor<OwnImageExecutor>;
export type CreateTextBatchExecutor = CreateExecutor<OwnTextBatchExecutor>;
export type CreateImageBatchExecutor = CreateExecutor<OwnImageBatchExecutor>;

export interface OwnExecutorOptions {
  /** The id under which the model is served. */
  readonly model: string;
}

export type OwnExecutor = OwnTextExecutor | OwnImageExecutor | OwnBatchExecutor;
export type OwnBatchExecutor = OwnTextBatchExecutor | OwnImageBatchExecutor;

export interface OwnTextExecutor extends OwnBase {
  readonly card: OwnTextCard;
  /**
   * Writes one text, yielding chunks and returning facts about the whole. Up to `slots` calls run concurrently.
   *
   * End soon once `signal` aborts: the slot stays taken until then. An error whose `code` is `invalid_request` ends the
   * request with its message shown to the client; any other error requeues it and counts an attempt.
   */
  run(request: OwnTextRequest, signal: AbortSignal): AsyncIterable<OwnPiece, OwnTextEnd | void>;
}

export interface OwnImageExecutor extends OwnBase {
  readonly card: OwnImageCard;
  /** Draws one image, as `run` of a text writes one. May be an async function if it reports no steps. */
  run(request: OwnImageRequest, signal: AbortSignal): AsyncIterable<OwnStep, OwnImage> | Promise<OwnImage>;
}

export interface OwnTextBatchExecutor extends OwnBase {
  readonly card: OwnTextCard;
  /** Writes several texts in one call, without chunks: see `OwnImageBatchExecutor`. */
  runBatch(
    requests: readonly OwnTextRequest[],
    signal: AbortSignal,
  ): Promise<readonly (Error | (OwnTextEnd & { readonly text: string }))[]>;
}

export interface OwnImageBatchExecutor extends OwnBase {
  readonly card: OwnImageCard;
  /**
   * Draws the images of up to `slots` requests, those that wait when the call begins, and returns one for each in their
   * order. One call at a time; `signal` aborts when none of them is wanted any more. An error in place of an image ends
   * that request as an error of `run` would; an error of the call ends all of them.
   */
  runBatch(requests: readonly OwnImageRequest[], signal: AbortSignal): Promise<readonly (Error | OwnImage)[]>;
}

interface OwnBase {
  /** Max concurrent calls of `run`, 1 to 4096. Default 1. */
  readonly slots?: number;
  /** Called before an orderly end of the process; may take 10 seconds. */
  close?(): void | Promise<void>;
}

interface OwnCardBase {
  /** Optional check: must equal the id under which the model is served. */
  readonly id?: string;
  /** Owner of the model, shown at `/v1/models`. Default: `own`. */
  readonly ownedBy?: string;
}

export interface OwnTextCard extends OwnCardBase {
  readonly kind: 'text';
  /** Max tokens read and written together. `run` must enforce it: nothing else counts them. */
  readonly maxModelTokens?: number;
  /** False if it takes prompts only, no chat messages. Default true. */
  readonly takesMessages?: boolean;
  /** True if messages may have images: parts `image_url` whose `url` is the data URL of a PNG. Default false. */
  readonly takesImages?: boolean;
}

export interface OwnImageCard extends OwnCardBase {
  readonly kind: 'image';
  /** Allowed side lengths, in pixels. Default: multiples of 8 from 64 to 1024; 512x512 if the request has no size. */
  readonly sizes?: {
    readonly multiple: number;
    readonly min: number;
    readonly max: number;
    readonly default: { readonly width: number; readonly height: number };
  };
  /** Default: always 1. */
  readonly steps?: OwnRange;
  /** Default: always 1. */
  readonly guidance?: OwnRange;
  /** The first is the default. Default: `own`. */
  readonly schedulers?: readonly string[];
  /** Max length of a prompt in tokens. Default: 0, which means unknown. */
  readonly maxPromptTokens?: number;
}

export interface OwnRange {
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

export interface OwnTextRequest {
  /** Index of the text within the request, from 0. */
  readonly index: number;
  /** Seed of this text, 0 to 2³²−1. Equal seeds should give equal texts, since a request may be rerun. */
  readonly seed: number;
  /** `params` holds the client's fields under their API names; `maxTokens` is the max number of tokens to write. */
  readonly input: Pick<UpstreamTextInput, 'params' | 'maxTokens' | 'n' | 'logprobs'>;
}

export interface OwnImageRequest {
  /** Index of the image within the request, from 0. */
  readonly index: number;
  /** Seed of this image, 0 to 2³²−1. */
  readonly seed: number;
  /** The complete input, with defaults filled in, within the limits of the card. */
  readonly input: ImageInput;
}

/** Text to append. `tokens`: its number of tokens, default 1. */
export type OwnPiece = string | { readonly text: string; readonly tokens?: number };

export interface OwnTextEnd {
  /** `length`: the token limit was reached. Default: `stop`. */
  readonly finishReason?: 'stop' | 'length';
  /** The stop string that ended the text. */
  readonly stop?: string;
  /** For `usage`. If `completionTokens` is absent, it is counted from the yielded chunks. */
  readonly promptTokens?: number;
  readonly completionTokens?: number;
}

/** Reports a completed step: 1 to `numInferenceSteps`, strictly increasing. */
export interface OwnStep {
  readonly step: number;
  /** A view of the unfinished image. Dropped unless a preview is due (`input.previewEvery`). */
  readonly preview?: OwnPreview;
}

/** A file of at most 2 KiB plus a quarter of a byte per pixel of the image. */
export type OwnPreview = OwnFile;

/**
 * RGB, three bytes per pixel from the top left, encoded in the client's format; or a file, which is served unchanged.
 */
export type OwnImage = { readonly data: Uint8Array } | OwnFile;

interface OwnFile {
  readonly data: Uint8Array;
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp';
}

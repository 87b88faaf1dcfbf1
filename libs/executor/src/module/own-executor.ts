/** What a module of somebody's own exports and is given: docs/executors.md. */
import type { PictureInput, UpstreamTextInput } from '@darkroom/kinds';

/** The one export that a module has to have. Whatever takes long, such as loading a model, belongs into it. */
export type CreateExecutor<Executor extends OwnExecutor = OwnExecutor> = (
  options: OwnExecutorOptions,
) => Executor | Promise<Executor>;
export type CreateTextExecutor = CreateExecutor<OwnTextExecutor>;
export type CreatePictureExecutor = CreateExecutor<OwnPictureExecutor>;

export interface OwnExecutorOptions {
  /** The id that the model is served under. */
  readonly model: string;
}

export type OwnExecutor = OwnTextExecutor | OwnPictureExecutor;

export interface OwnTextExecutor extends OwnBase {
  readonly card: OwnTextCard;
  /**
   * Writes one text. It is called as often at once as there are slots.
   *
   * Gives out pieces as they come, and in the end what is to be said of the whole. Should end soon once `signal` is aborted: nobody
   * reads on, and its place is taken until then. An error whose `code` is `invalid_request` ends the request, and its message is
   * shown to who sent it. After any other error the request goes back to the queue, with an attempt counted.
   */
  run(request: OwnTextRequest, signal: AbortSignal): AsyncIterable<OwnPiece, OwnTextEnd | void>;
}

export interface OwnPictureExecutor extends OwnBase {
  readonly card: OwnPictureCard;
  /** Draws one picture, as `run` of a text writes one; one that says no steps may be an async function. */
  run(request: OwnPictureRequest, signal: AbortSignal): AsyncIterable<OwnStep, OwnPicture> | Promise<OwnPicture>;
}

interface OwnBase {
  /** Outputs that are made at once, 1 to 4096. Default 1. */
  readonly slots?: number;
  /** Called before the process ends in order; it has 10 seconds. */
  close?(): void | Promise<void>;
}

interface OwnCardBase {
  /** Only to be sure: it has to be the one that the model is served under. */
  readonly id?: string;
  /** Who made the model, for `/v1/models`. Default: `own`. */
  readonly ownedBy?: string;
}

export interface OwnTextCard extends OwnCardBase {
  readonly kind: 'text';
  /** Tokens that it reads and writes together at most. `run` has to see to it: nobody else counts them. */
  readonly maxModelTokens?: number;
  /** Whether it takes messages, or prompts only. Default true. */
  readonly takesMessages?: boolean;
}

export interface OwnPictureCard extends OwnCardBase {
  readonly kind: 'picture';
  /** Pixels of a side. Default: multiples of 8 from 64 to 1024, and 512x512 where nobody asks for a size. */
  readonly sizes?: {
    readonly multiple: number;
    readonly min: number;
    readonly max: number;
    readonly default: { readonly width: number; readonly height: number };
  };
  /** Default: 1, and no other number. */
  readonly steps?: OwnRange;
  /** Default: 1, and no other number. */
  readonly guidance?: OwnRange;
  /** The first is the default. Default: `own`. */
  readonly schedulers?: readonly string[];
  /** Tokens of a prompt that it reads. Default: 0, which means that it does not say. */
  readonly maxPromptTokens?: number;
}

export interface OwnRange {
  readonly min: number;
  readonly max: number;
  readonly default: number;
}

export interface OwnTextRequest {
  /** Which of the request's texts, from 0. */
  readonly index: number;
  /** Of this text: 0 to 2³²−1. The same seed should give the same text, since a request may be run again. */
  readonly seed: number;
  /** `asked` has the fields that the client sent, by the names of the API; `maxTokens` is the most that is to be written. */
  readonly input: Pick<UpstreamTextInput, 'asked' | 'maxTokens' | 'n' | 'logprobs'>;
}

export interface OwnPictureRequest {
  /** Which of the request's pictures, from 0. */
  readonly index: number;
  /** Of this picture: 0 to 2³²−1. */
  readonly seed: number;
  /** All that makes the picture, within the limits of the card, with every default filled in. */
  readonly input: PictureInput;
}

/** Text that is added; `tokens`: how many it is made of, 1 if that is not said. */
export type OwnPiece = string | { readonly text: string; readonly tokens?: number };

export interface OwnTextEnd {
  /** `length`: there was no room for more. Default: `stop`. */
  readonly finishReason?: 'stop' | 'length';
  /** The text of `stop` that ended it. */
  readonly stop?: string;
  /** For `usage`. What is written is counted by the pieces if `completionTokens` is absent. */
  readonly promptTokens?: number;
  readonly completionTokens?: number;
}

/** A step is done: 1 to `numInferenceSteps`, each more than the one before. */
export interface OwnStep {
  readonly step: number;
  /** What it would become by now. It is dropped where nobody asked for one (`input.previewEvery`). */
  readonly preview?: OwnPreview;
}

/** A file, at most 2 KiB and a quarter of a byte for each pixel of the picture. */
export type OwnPreview = OwnFile;

/** RGB, three bytes for each pixel from the top left, which are encoded as the client asked for; or a file, which is served as it is. */
export type OwnPicture = { readonly data: Uint8Array } | OwnFile;

interface OwnFile {
  readonly data: Uint8Array;
  readonly contentType: 'image/png' | 'image/jpeg' | 'image/webp';
}

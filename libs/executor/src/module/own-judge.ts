/** Public interface of a moderation module: docs/judges.md. */

/**
 * The one required export of a moderation module. Do slow setup here, such as loading a model.
 *
 * @example
 *   export const createJudge: CreateJudge = ({ model }) => ({
 *     judgePrompt: ({ prompt }) =>
 *       prompt.includes('dragon') ? { allowed: false, reason: `${model} draws no dragons` } : { allowed: true },
 *   });
 */
export type CreateJudge = (options: OwnJudgeOptions) => OwnJudge | Promise<OwnJudge>;

export interface OwnJudgeOptions {
  /** The id of the model whose requests are moderated. */
  readonly model: string;
}

/** One of the two may be absent: all prompts or images then pass. */
export interface OwnJudge {
  /** Called before an image is computed. End soon once `signal` aborts: the verdict is no longer awaited. */
  judgePrompt?(prompt: JudgedPrompt, signal: AbortSignal): Promise<OwnVerdict> | OwnVerdict;
  /** Called for each finished image, before clients can see it. */
  judgeImage?(image: JudgedImage, signal: AbortSignal): Promise<OwnVerdict> | OwnVerdict;
}

/** Any other value counts as no verdict, and nothing passes without one. The client sees the reason. */
export type OwnVerdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

export interface JudgedPrompt {
  readonly prompt: string;
  /** Empty if there is none. */
  readonly negativePrompt: string;
}

export interface JudgedImage extends JudgedPrompt {
  /** Index of the image within the request, from 0. */
  readonly index: number;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  /** RGB, three bytes per pixel; an encoded file if `contentType` is present. */
  readonly data: Uint8Array;
  /** Media type such as `image/png`, if a server or module returned the image as a file. */
  readonly contentType?: string;
}

/** A prompt or image to moderate. */
export type JudgedSubject =
  | { readonly type: 'prompt'; readonly subject: JudgedPrompt }
  | { readonly type: 'image'; readonly subject: JudgedImage };

/** Max length of a verdict's reason; the rest is cut. */
export const maxReasonLength = 300;

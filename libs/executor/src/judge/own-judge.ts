/** What a module exports that judges prompts and pictures, and what it is given: docs/judges.md. */

/** The one export that such a module has to have. Whatever takes long, such as loading a model, belongs into it. */
export type CreateJudge = (options: OwnJudgeOptions) => OwnJudge | Promise<OwnJudge>;

export interface OwnJudgeOptions {
  /** The id of the model whose requests are judged. */
  readonly model: string;
}

/** One of the two may be absent: then all of those pass. */
export interface OwnJudge {
  /** Before anything is drawn. Should end soon once `signal` is aborted: its verdict is not waited for any more. */
  judgePrompt?(prompt: JudgedPrompt, signal: AbortSignal): Promise<OwnVerdict> | OwnVerdict;
  /** Of each finished picture, before anybody sees it. */
  judgePicture?(picture: JudgedPicture, signal: AbortSignal): Promise<OwnVerdict> | OwnVerdict;
}

/** Anything else is no verdict, and nothing passes without one. The reason is shown to who sent the request. */
export type OwnVerdict = { readonly allowed: true } | { readonly allowed: false; readonly reason: string };

export interface JudgedPrompt {
  readonly prompt: string;
  /** Empty where there is none. */
  readonly negativePrompt: string;
}

export interface JudgedPicture extends JudgedPrompt {
  /** Which of the request's pictures, from 0. */
  readonly index: number;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
  /** RGB, three bytes for each pixel; a file where `contentType` is there. */
  readonly data: Uint8Array;
  /** Such as `image/png`, of a picture that a server or module gave as a file. */
  readonly contentType?: string;
}

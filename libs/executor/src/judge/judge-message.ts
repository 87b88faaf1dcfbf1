/** What a worker and the process of a judge say to each other, over Node's IPC with structured clones. */
import type { JudgedPicture, JudgedPrompt } from './own-judge.ts';

/** What is to be judged. */
export type JudgedSubject =
  | { readonly type: 'prompt'; readonly subject: JudgedPrompt }
  | { readonly type: 'picture'; readonly subject: JudgedPicture };

export type MessageToJudge =
  /** `specifier`: the URL of a file, or the name of a package. */
  | { readonly type: 'start'; readonly specifier: string; readonly model: string }
  /** `call` is a number that was never used before in this process. */
  | ({ readonly call: number } & JudgedSubject)
  | { readonly type: 'abort'; readonly call: number };

export type MessageFromJudge =
  | { readonly type: 'ready'; readonly judges: readonly JudgedSubject['type'][] }
  /** It cannot start. In the module's own words, which are for the operator. */
  | { readonly type: 'unfit'; readonly message: string }
  | { readonly type: 'verdict'; readonly call: number; readonly allowed: boolean; readonly reason: string }
  /** It threw, or gave no verdict. */
  | { readonly type: 'threw'; readonly call: number; readonly message: string }
  /** It ends, by an error that nobody caught. */
  | { readonly type: 'dying'; readonly message: string };

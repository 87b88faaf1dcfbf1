/** What a process and its grammar thread say to each other. The thread answers each question, in their order. */
import type { MessagePort } from 'node:worker_threads';
import type { TextConstraint } from '../text-input.ts';

/** The tokens that texts are matched with. */
export interface GrammarVocabulary {
  /** The document that the model's codec is made from: by the thread, since it takes a while. */
  readonly codecDocument: Uint8Array;
  /** Ids of tokens that end a text. */
  readonly endIds: readonly number[];
}

export interface GrammarThreadData {
  readonly port: MessagePort;
  /** Of the model that texts are matched for. */
  readonly vocabulary: GrammarVocabulary | undefined;
}

export type GrammarQuestion =
  /** The first one: whether it is there, with its vocabulary. */
  | { readonly type: 'start' }
  /** Whether it is a constraint. */
  | { readonly type: 'check'; readonly constraint: TextConstraint }
  /** What may follow these tokens, and from now on be accepted under this number. */
  | {
      readonly type: 'open';
      readonly matcher: number;
      readonly constraint: TextConstraint;
      readonly ids: readonly number[];
    }
  /** What may follow this one. */
  | { readonly type: 'accept'; readonly matcher: number; readonly id: number }
  | { readonly type: 'close'; readonly matcher: number };

/** Tokens that may come next. */
export interface AllowedTokens {
  /** A bit for each token, the lowest of a word first. */
  readonly words: Int32Array;
  /** Nothing may come but the end. */
  readonly isEnd: boolean;
}

export type GrammarAnswer =
  | { readonly type: 'done' }
  | { readonly type: 'allowed'; readonly allowed: AllowedTokens }
  /** It cannot be done. `isBroken`: nor can anything else in this thread from now on. */
  | { readonly type: 'refused'; readonly problem: string; readonly isBroken: boolean };

/** Messages between a process and its grammar threads. A thread answers the questions in order. */
import type { MessagePort } from 'node:worker_threads';
import type { WebAssemblyModule } from './web-assembly.ts';

/** The tokens of generated texts. */
export interface GrammarVocabulary {
  /** The codec's document. The thread builds the codec from it, which takes a while. */
  readonly codecDocument: Uint8Array;
  /** Ids of end tokens. */
  readonly endIds: readonly number[];
}

export interface GrammarThreadData {
  readonly port: MessagePort;
  /** Vocabulary of the model; without one, bytes are the tokens. */
  readonly vocabulary: GrammarVocabulary | undefined;
  /** Memory limit of the engine in bytes. */
  readonly maxBytes: number;
}

/** First message to a thread; has no answer. */
export interface GrammarModule {
  readonly type: 'module';
  readonly module: WebAssemblyModule;
}

/** A question to a thread. `source` is a `TextConstraint` as JSON. */
export type GrammarQuestion =
  /** First question: answered once the engine is ready. */
  | { readonly type: 'start' }
  /** Compiles a constraint and generates some tokens with it. */
  | { readonly type: 'check'; readonly source: string }
  /** Opens a matcher with this number, after these tokens. */
  | { readonly type: 'open'; readonly matcher: number; readonly source: string; readonly ids: readonly number[] }
  | { readonly type: 'accept'; readonly matcher: number; readonly id: number }
  | { readonly type: 'close'; readonly matcher: number };

/** The allowed next tokens. */
export interface AllowedTokens {
  /** Bit mask over token ids, least significant bit first. */
  readonly words: Int32Array;
  /** True if only the end is allowed. */
  readonly isEnd: boolean;
}

export type GrammarAnswer =
  /** `threadId`: the kernel's id of the thread, in the answer to `start`. */
  | { readonly type: 'done'; readonly threadId?: number | undefined }
  /** `ms`: time to compile and to generate the test tokens. `isRecursive`: masks take long. */
  | { readonly type: 'checked'; readonly ms: number; readonly isRecursive: boolean }
  | { readonly type: 'allowed'; readonly allowed: AllowedTokens }
  /** The constraint or the text is invalid. `isBroken`: the thread is unusable. */
  | { readonly type: 'refused'; readonly problem: string; readonly isBroken: boolean };

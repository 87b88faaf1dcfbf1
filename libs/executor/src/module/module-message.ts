/** Messages between a worker and its module's process, sent over Node's IPC with structured clones. */
import { z } from 'zod';
import type { OwnImageRequest, OwnTextRequest } from './own-executor.ts';
import type { JudgedSubject } from './own-judge.ts';

/** Max serialized size of each value that a call yields (`yielded`) and of the one it returns, bytes. */
export interface MaxBytes {
  readonly yielded: number;
  readonly returned: number;
}

/** The function that a module exports: it makes an executor or a moderator. */
export type ModuleExport = 'createExecutor' | 'createJudge';

export type MessageToModule =
  /** `specifier`: the URL of a file, or the name of a package. */
  | {
      readonly type: 'start';
      readonly specifier: string;
      readonly model: string;
      readonly exportName: ModuleExport;
    }
  /** `call` is unique within this process. */
  | {
      readonly type: 'run';
      readonly call: number;
      readonly request: OwnTextRequest | OwnImageRequest | JudgedSubject;
      readonly maxBytes: MaxBytes;
    }
  /** The parent has read one `yielded` message, so the module may send another. */
  | { readonly type: 'taken'; readonly call: number }
  | { readonly type: 'abort'; readonly call: number }
  | { readonly type: 'ping' }
  | { readonly type: 'close' };

/** A value from the module in V8's serialization format: serialized there, so its size is checked before it is sent. */
const packed = z.custom<Uint8Array>((value) => value instanceof Uint8Array);
const call = z.number();

const callMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('yielded'), call, value: packed }),
  /** The call has ended. */
  z.object({ type: z.literal('returned'), call, value: packed }),
  /** `stack` is empty if the thrown value has none. */
  z.object({ type: z.literal('threw'), call, isRefusal: z.boolean(), message: z.string(), stack: z.string() }),
]);

export const messageFromModule = z.discriminatedUnion('type', [
  /** `info`: the card and slots of an executor, or what a moderator judges. */
  z.object({ type: z.literal('ready'), info: packed }),
  /** The module cannot start. `thrown` is the module's own message, for the operator. */
  z.object({ type: z.literal('unfit'), message: z.string(), thrown: z.string() }),
  callMessage,
  z.object({ type: z.literal('pong') }),
  /** The process exits after an uncaught error. */
  z.object({ type: z.literal('dying'), message: z.string() }),
]);
export type MessageFromModule = z.infer<typeof messageFromModule>;
/** Message about one call. */
export type CallMessage = z.infer<typeof callMessage>;

/** Max unread messages per call. */
export const maxUnread = 16;

/** What a worker and the process of a module say to each other, over Node's IPC with structured clones. */
import type { OwnPictureRequest, OwnTextRequest } from './own-executor.ts';

/** What the module says, in V8's own format: made where it is said, so that its size is known before it is sent. */
export type Packed = Uint8Array;

/** What one thing that a call gives out may have, and what it returns, bytes. */
export interface MostBytes {
  readonly said: number;
  readonly returned: number;
}

export type MessageToModule =
  /** `specifier`: the URL of a file, or the name of a package. */
  | { readonly type: 'start'; readonly specifier: string; readonly model: string }
  /** `call` is a number that was never used before in this process. */
  | {
      readonly type: 'run';
      readonly call: number;
      readonly request: OwnTextRequest | OwnPictureRequest;
      readonly most: MostBytes;
    }
  /** One thing that it said was read, so there is room for another. */
  | { readonly type: 'taken'; readonly call: number }
  | { readonly type: 'abort'; readonly call: number }
  | { readonly type: 'ping' }
  | { readonly type: 'close' };

export type MessageFromModule =
  | { readonly type: 'ready'; readonly card: Packed; readonly slots: Packed }
  /** It cannot start. `thrown`: in the module's own words, which are for the operator. */
  | { readonly type: 'unfit'; readonly message: string; readonly thrown: string }
  | { readonly type: 'said'; readonly call: number; readonly value: Packed }
  /** The call is over. */
  | { readonly type: 'returned'; readonly call: number; readonly value: Packed }
  | { readonly type: 'threw'; readonly call: number; readonly isRefusal: boolean; readonly message: string }
  | { readonly type: 'pong' }
  /** It ends, by an error that nobody caught. */
  | { readonly type: 'dying'; readonly message: string };

/** Things that a call may have said that nobody has read. */
export const mostUnread = 16;

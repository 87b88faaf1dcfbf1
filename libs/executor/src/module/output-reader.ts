import type { RowOutput } from '@darkroom/core';
import type { CallEvent } from '../calls/backend-client.ts';
import type { MaxBytes } from './module-message.ts';

/** Progress of an output and its text so far, from which another reader continues. */
export interface ReaderState {
  readonly done: number;
  readonly text: string;
}

/**
 * Validates a module's values of one output, in order. Everything behind it can be trusted as from any other executor.
 */
export interface OutputReader {
  readonly maxBytes: MaxBytes;
  readonly state: ReaderState;
  /** Validates a yielded value. @throws ContractViolation */
  read(value: unknown): Iterable<CallEvent>;
  /** Validates the returned value. @throws ContractViolation */
  end(value: unknown): RowOutput;
}

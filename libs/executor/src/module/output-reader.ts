import type { RowOutput } from '@darkroom/core';
import type { Said } from '../calls/caller.ts';
import type { MostBytes } from './module-message.ts';

/** Reads what a module says of one output, in order: the border behind which everything is as from any other executor. */
export interface OutputReader {
  readonly most: MostBytes;
  /** Reads one thing that it gave out. @throws WrongSaid */
  read(said: unknown): Iterable<Said>;
  /** Reads what it gave back in the end. @throws WrongSaid */
  end(said: unknown): RowOutput;
}

import { type OwnerTurns, withTimeLimit } from '@darkroom/core';
import { ApiError, overloaded } from '../http/api-error.ts';

/** Client that waits for a turn or for memory. */
export interface Waiter {
  /** `''`: all anonymous clients together. */
  owner: string;
  /** Aborts when the client disconnects. */
  signal: AbortSignal;
}

/**
 * Waits for a turn; resolves with a function that ends it. Throws 503 on timeout or if too much of the owner waits, and
 * 400 if the client disconnects.
 */
export async function takeTurn(turns: OwnerTurns, { owner, signal }: Waiter, maxWaitMs: number): Promise<() => void> {
  try {
    const release = await withTimeLimit(maxWaitMs, signal, (both) => turns.acquire(owner, both));
    if (release !== undefined) return release;
  } catch (error) {
    if (signal.aborted) throw clientGone(error);
  }
  throw overloaded();
}

export function clientGone(cause: unknown): ApiError {
  return new ApiError(400, 'client_gone', 'the client disconnected before its images could be read', { cause });
}

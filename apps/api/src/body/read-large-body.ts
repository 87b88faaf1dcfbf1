import { OwnerTurns } from '@darkroom/core';
import type { ApiCall } from '../http/api-env.ts';
import { type ApiError, overloaded } from '../http/api-error.ts';
import { BodyMemory } from './body-memory.ts';
import { withMinRate } from './min-rate.ts';

/** Shares the event loop fairly between owners: one chunk or one parsed body per iteration. */
const turns = new OwnerTurns({ concurrency: 1, maxWaitingPerOwner: Infinity });
/** Memory limit for all large bodies of this process that are not parsed yet. */
const memory = new BodyMemory(128 * 2 ** 20);

/**
 * Reads a large body, parses it in its owner's turn and returns the result. Memory is bounded by `maxBytes` per body
 * and by a limit for all bodies together.
 *
 * @throws ApiError 408 if the body arrives too slowly, 503 if memory is exhausted, or `tooLarge()` if the body exceeds
 * `maxBytes`.
 */
export async function readLargeBody<Result>(
  c: ApiCall,
  { maxBytes, tooLarge, parse }: { maxBytes: number; tooLarge: () => ApiError; parse: (bytes: Uint8Array) => Result },
): Promise<Result> {
  const owner = c.get('owner');
  const reader = c.req.raw.body!.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    const read = withMinRate(reader, c.req.raw.signal);
    for (let chunk = await read(); chunk !== undefined; chunk = await read()) {
      if (size + chunk.byteLength > maxBytes) throw tooLarge();
      if (!memory.take(owner, chunk.byteLength)) throw overloaded();
      size += chunk.byteLength;
      chunks.push(chunk);
      await takeTurn(c);
    }
    return parse(Buffer.concat(chunks));
  } finally {
    memory.free(owner, size);
    reader.cancel().catch(() => {});
  }
}

/** Waits for the owner's turn, which ends in the next `setImmediate`: it includes synchronous work such as parsing. */
async function takeTurn(c: ApiCall): Promise<void> {
  const release = await turns.acquire(c.get('owner'), c.req.raw.signal);
  setImmediate(release!);
}

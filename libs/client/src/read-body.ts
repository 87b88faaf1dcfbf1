import type { ClientContext } from './client-context.ts';
import { ClientError } from './client-error.ts';
import { readWithin } from './read-within.ts';
import { connectionFailed } from './send.ts';

/** An answer's body, whole. Throws {@link ClientError} when it breaks off or stalls, or the signal's reason. */
export async function readBytes(
  { silenceMs }: ClientContext,
  { body }: Response,
  signal: AbortSignal | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  try {
    for (;;) {
      const part = await readWithin(reader, silenceMs);
      if (part === undefined) break;
      parts.push(part);
    }
  } catch (error) {
    // Closes the connection; nothing to wait for.
    reader.cancel().catch(() => {});
    signal?.throwIfAborted();
    throw connectionFailed('an answer', error);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** As `readBytes`; throws {@link ClientError} also for what is not JSON. */
export async function readJson<Body>(
  context: ClientContext,
  response: Response,
  signal: AbortSignal | undefined,
): Promise<Body> {
  const text = new TextDecoder().decode(await readBytes(context, response, signal));
  try {
    return JSON.parse(text) as Body;
  } catch (error) {
    throw new ClientError({ status: 200, code: 'invalid_answer', message: 'the answer is not JSON', cause: error });
  }
}

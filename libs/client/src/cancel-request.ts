import type { ClientContext } from './client-context.ts';
import { ClientError } from './client-error.ts';
import { pollRequest } from './poll-request.ts';
import { requestPath } from './request-path.ts';
import type { CanceledRequest } from './request-view.ts';
import { retrying } from './retrying.ts';
import { readJson } from './read-body.ts';
import { send } from './send.ts';

/** Canceling twice is canceling once, so a lost answer is asked for again; a 409 then may be our own doing. */
export async function cancelRequest(
  context: ClientContext,
  id: string,
  signal: AbortSignal | undefined,
): Promise<CanceledRequest> {
  let tries = 0;
  try {
    return await retrying(context, signal, async () => {
      tries++;
      const response = await send(context, requestPath(id), { method: 'DELETE', signal });
      return readJson<CanceledRequest>(context, response, signal);
    });
  } catch (error) {
    if (tries === 1 || !(error instanceof ClientError) || error.status !== 409) throw error;
    const { request } = await pollRequest(context, id, signal);
    if (request.status === 'canceled') return { request_id: id, status: 'canceled' };
    throw error;
  }
}

import type { ClientContext } from './client-context.ts';
import { requestPath } from './request-path.ts';
import type { RequestView } from './request-view.ts';
import { retryAfterOf } from './retry-after.ts';
import { retrying } from './retrying.ts';
import { readJson } from './read-body.ts';
import { send } from './send.ts';

export interface PolledRequest {
  request: RequestView;
  /** Seconds after which to poll again. */
  retryAfterS: number | undefined;
}

/** One poll, tried again over what passes. */
export function pollRequest(
  context: ClientContext,
  id: string,
  signal: AbortSignal | undefined,
): Promise<PolledRequest> {
  return retrying(context, signal, async () => {
    const response = await send(context, requestPath(id), { signal });
    const request = await readJson<RequestView>(context, response, signal);
    return { request, retryAfterS: retryAfterOf(response) };
  });
}

import type { ClientContext } from './client-context.ts';
import { ClientError } from './client-error.ts';
import { followEvents } from './follow-events.ts';
import { pollRequest } from './poll-request.ts';
import { type EndedRequest, isEnded } from './request-view.ts';

/** Seconds between polls when the server names none. */
const pollEveryS = 1;
/** Fewer than for a stream: where no events come, polls do the same soon enough. */
const maxEventRetries = 2;

/** Follows the events to the end; polls where these cannot be had, as behind a proxy that holds them back. */
export async function waitForEnd(
  context: ClientContext,
  id: string,
  signal: AbortSignal | undefined,
): Promise<EndedRequest> {
  const first = await pollRequest(context, id, signal);
  if (isEnded(first.request)) return first.request;
  await followToEnd(context, id, signal);
  for (;;) {
    const { request, retryAfterS = pollEveryS } = await pollRequest(context, id, signal);
    if (isEnded(request)) return request;
    await context.delay(retryAfterS * 1000, signal);
  }
}

async function followToEnd(context: ClientContext, id: string, signal: AbortSignal | undefined): Promise<void> {
  try {
    const maxRetries = Math.min(maxEventRetries, context.maxRetries);
    const events = followEvents({ ...context, maxRetries }, id, { signal });
    while ((await events.next()).done !== true);
  } catch (error) {
    // 404 and 410 too: the poll that follows throws them.
    if (!(error instanceof ClientError)) throw error;
  }
}

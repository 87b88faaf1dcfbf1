import { backOffMs } from './back-off.ts';
import type { ClientContext } from './client-context.ts';
import { type ClientError, isPassing } from './client-error.ts';

/** Tries again what may fare better later, up to `maxRetries` times; for what may safely be done twice. */
export async function retrying<Result>(
  context: ClientContext,
  signal: AbortSignal | undefined,
  attempt: () => Promise<Result>,
  isWorthIt: (error: unknown) => error is ClientError = isPassing,
): Promise<Result> {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isWorthIt(error) || failures >= context.maxRetries) throw error;
      await context.delay(backOffMs(context, { failures, retryAfterS: error.retryAfterS }), signal);
    }
  }
}

import { backOffMs } from './back-off.ts';
import type { ClientContext } from './client-context.ts';
import { isPassing } from './client-error.ts';

/** Tries again what may fare better later, up to `maxRetries` times; for what may safely be done twice. */
export async function retrying<Result>(
  context: ClientContext,
  signal: AbortSignal | undefined,
  attempt: () => Promise<Result>,
): Promise<Result> {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isPassing(error) || failures >= context.maxRetries) throw error;
      await context.delay(backOffMs(context, { failures, retryAfterS: error.retryAfterS }), signal);
    }
  }
}

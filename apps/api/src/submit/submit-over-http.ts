import type { Context } from 'hono';
import { allowanceHeaders } from '../auth/limit-rate.ts';
import type { ApiEnv } from '../http/api-env.ts';
import type { Submission, SubmitRequest, SubmittedRequest } from './submit-request.ts';

/** Takes in what came with an HTTP request, says in headers what became of it, and notes its id for the log. */
export async function submitOverHttp(
  c: Context<ApiEnv>,
  submitRequest: SubmitRequest,
  request: Pick<Submission, 'body' | 'kind' | 'refine'>,
): Promise<SubmittedRequest> {
  const submitted = await submitRequest({
    ...request,
    apiKey: c.get('apiKey'),
    idempotencyKey: c.req.header('idempotency-key'),
    path: c.req.path,
    onAllowance(allowance) {
      for (const [name, value] of Object.entries(allowanceHeaders(allowance))) c.header(name, value);
    },
  });
  c.set('requestId', submitted.id);
  if (submitted.isReplayed) c.header('Idempotent-Replayed', 'true');
  return submitted;
}

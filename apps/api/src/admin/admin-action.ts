/** Shared parts of admin routes. */
import { noAdminKey } from '../auth/admin-access.ts';
import { bodyTooSlow } from '../body/min-rate.ts';
import { bodyTooLarge, wrongType } from '../body/read-json-body.ts';
import type { ApiContext } from '../context/context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { modelNotFound } from '../http/api-error.ts';
import { errorSchema } from '../http/error-response.ts';
import { describeErrorAnswer, jsonAnswer } from '../openapi/api-route.ts';

/** Audit record of an admin action: what was done to which object, and the outcome. */
export interface AdminAction {
  action:
    | 'pause model'
    | 'resume model'
    | 'restart model'
    | 'forget model'
    | 'drain worker'
    | 'resume worker'
    | 'sleep worker'
    | 'wake worker'
    | 'check_health worker'
    | 'memory worker'
    | 'rpc worker'
    | 'retry request'
    | 'drop request'
    | 'add key'
    | 'revoke key';
  outcome: string;
  model?: string;
  worker?: string;
  request_id?: string;
  retried_as?: string;
  method?: string;
  key_id?: string;
  /** Name of an added key. */
  owner?: string;
}

/** Logs an admin action with the name of the admin's key; empty on servers without keys. */
export function audit(c: ApiCall, { log }: ApiContext, action: AdminAction): void {
  log.info({ admin: c.get('apiKey').name, ...action }, 'admin action');
}

/** Returns the model in the path. Throws 404 for a model that no worker has published, and stores nothing for it. */
export async function knownModel(c: ApiCall, { models }: ApiContext): Promise<string> {
  const model = c.req.param('model') ?? '';
  const known = await models.reload();
  if (!known.some(({ id }) => id === model)) throw modelNotFound(model, known);
  return model;
}

export const notAnAdmin = describeErrorAnswer('The key is not an admin key.', noAdminKey());

/** Max size of a JSON body. */
export const maxBodyBytes = 65_536;
/** Errors of routes with a JSON body. */
export const bodyErrors = {
  400: jsonAnswer('An invalid body.', errorSchema),
  408: describeErrorAnswer('The body did not arrive in time.', bodyTooSlow()),
  413: describeErrorAnswer('The body is too large.', bodyTooLarge(maxBodyBytes)),
  415: describeErrorAnswer('The body is not application/json.', wrongType('text/plain')),
};

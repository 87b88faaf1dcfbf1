/** What all actions of admins have in common. */
import { noAdminKey } from '../auth/admin-access.ts';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { modelNotFound } from '../http/api-error.ts';
import { errorAnswer } from '../http/api-route.ts';

/** What an admin did to what, and what came of it. */
export interface AdminAction {
  action:
    | 'pause model'
    | 'resume model'
    | 'reload model'
    | 'drain worker'
    | 'resume worker'
    | 'sleep worker'
    | 'wake worker'
    | 'check_health worker'
    | 'memory worker'
    | 'retry request'
    | 'drop request';
  outcome: string;
  model?: string;
  worker?: string;
  request_id?: string;
  retried_as?: string;
}

/** One line for each action, with the name of the admin's key: empty where whoever is on this machine may administer. */
export function audit(c: ApiCall, { log }: ApiContext, action: AdminAction): void {
  log.info({ admin: c.get('apiKey').name, ...action }, 'administered');
}

/** The model in the path. Throws 404 for one that no worker has ever brought: nothing is stored for it. */
export async function knownModel(c: ApiCall, { models }: ApiContext): Promise<string> {
  const model = c.req.param('model') ?? '';
  const known = await models.reload();
  if (!known.some(({ id }) => id === model)) throw modelNotFound(model, known);
  return model;
}

export const notAnAdmin = errorAnswer('The key is not one of an admin.', noAdminKey());

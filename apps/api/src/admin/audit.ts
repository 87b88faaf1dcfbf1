import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';

/** What an admin did to what, and what came of it. */
export interface AdminAction {
  action: 'pause model' | 'resume model' | 'drain worker' | 'resume worker' | 'retry request' | 'drop request';
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

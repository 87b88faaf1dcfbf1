import {
  type AddedKey,
  ClientError,
  type DeadRequestList,
  type KeyList,
  type NewKey,
  type FailedAttempt,
  type SystemStatus as Status,
} from '@darkroom/client';
import { openSession } from '../server/session.ts';
import type { PageStorage } from '../shell/page-storage.ts';
import type { SystemStatus } from './system-status.ts';

const timeoutMs = 10_000;

export type AdminSession = ReturnType<typeof openAdminSession>;

/** Opens a session with the admin key of this browser. All functions throw {@link ClientError}. */
export function openAdminSession(storage: PageStorage) {
  // Not the key of the image page: its users and the operators may differ.
  const session = openSession({ storage, keyName: 'darkroom.admin-key', timeoutMs, silenceMs: timeoutMs });
  const post = <Body>(...names: string[]): Promise<Body> =>
    session.client.call('POST', `/admin/${names.map(encodeURIComponent).join('/')}`);
  return {
    setKey: (key: string): void => session.setKey(key),
    async readSystem(): Promise<SystemStatus> {
      const { client } = session;
      const [status, { data: dead }, keys] = await Promise.all([
        client.call<Status>('GET', '/status'),
        client.call<DeadRequestList>('GET', '/admin/dead-requests'),
        client.call<KeyList>('GET', '/admin/keys'),
      ]);
      return { ...status, dead, keys };
    },
    pauseModel: (model: string, isPaused: boolean) => post('models', model, isPaused ? 'pause' : 'resume'),
    forgetModel: (model: string) => session.client.call('DELETE', `/admin/models/${encodeURIComponent(model)}`),
    restartModel: (model: string) => post('models', model, 'restart'),
    commandWorker: (worker: string, to: 'sleep' | 'wake') => post('workers', worker, to),
    drainWorker: (model: string, worker: string, isDraining: boolean) =>
      post('models', model, 'workers', worker, isDraining ? 'drain' : 'resume'),
    /** Resolves with the id of the new request. */
    retry: async (id: string) => (await post<{ request_id: string }>('dead-requests', id, 'retry')).request_id,
    drop: (id: string) => post('dead-requests', id, 'drop'),
    readFailure: (id: string) => session.client.call<FailedAttempt>('GET', `/admin/requests/${encodeURIComponent(id)}`),
    addKey: (key: NewKey) => session.client.call<AddedKey>('POST', '/admin/keys', { body: key }),
    revokeKey: (id: string) => session.client.call('DELETE', `/admin/keys/${encodeURIComponent(id)}`),
  };
}

/** Returns true if the server requires an admin key, or refused this one. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ClientError && (error.status === 401 || error.status === 403);
}

/** Returns true if an admin key would help. A server without ADMIN_KEYS is administered from its own machine only. */
export function needsKey(error: unknown): boolean {
  return isRefusal(error) && (error as ClientError).code !== 'admin_only_locally';
}

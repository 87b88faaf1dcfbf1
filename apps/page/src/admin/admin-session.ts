import { ClientError } from '@darkroom/client';
import { openSession } from '../server/session.ts';
import type { PageStorage } from '../shell/page-storage.ts';
import type { DeadRequest, SystemStatus } from './system-status.ts';

const timeoutMs = 10_000;

export type AdminSession = ReturnType<typeof openAdminSession>;

/** The way to the server, with the admin key of this browser. All throw {@link ClientError}. */
export function openAdminSession(storage: PageStorage) {
  // Not the key of the page with the pictures: who administers there need not do so here.
  const session = openSession({ storage, keyName: 'darkroom.admin-key', timeoutMs, silenceMs: timeoutMs });
  const post = <Body>(...names: string[]): Promise<Body> =>
    session.client.ask('POST', `/admin/${names.map(encodeURIComponent).join('/')}`);
  return {
    setKey: (key: string): void => session.setKey(key),
    async readSystem(): Promise<SystemStatus> {
      const { client } = session;
      const [status, { data: dead }] = await Promise.all([
        client.ask<Omit<SystemStatus, 'dead'>>('GET', '/status'),
        client.ask<{ data: DeadRequest[] }>('GET', '/admin/dead-requests'),
      ]);
      return { ...status, dead };
    },
    pauseModel: (model: string, isPaused: boolean) => post('models', model, isPaused ? 'pause' : 'resume'),
    reloadModel: (model: string) => post('models', model, 'reload'),
    askWorker: (worker: string, to: 'sleep' | 'wake') => post('workers', worker, to),
    drainWorker: (model: string, worker: string, isDraining: boolean) =>
      post('models', model, 'workers', worker, isDraining ? 'drain' : 'resume'),
    /** Resolves with the id of the new request. */
    retry: async (id: string) => (await post<{ request_id: string }>('dead-requests', id, 'retry')).request_id,
    drop: (id: string) => post('dead-requests', id, 'drop'),
  };
}

/** Whether the server wants an admin key, or another one. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ClientError && (error.status === 401 || error.status === 403);
}

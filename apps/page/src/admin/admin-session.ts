import { ClientError } from '@darkroom/client';
import type { PageStorage } from '../page-storage.ts';
import type { DeadRequest, SystemStatus } from './system-status.ts';

/** Not the key of the page with the pictures: who administers there need not do so here. */
const keyName = 'darkroom.admin-key';
const timeoutMs = 10_000;

/** The way to the server, with the admin key of this browser. All throw {@link ClientError}. */
export interface AdminSession {
  readSystem(): Promise<SystemStatus>;
  pauseModel(model: string, isPaused: boolean): Promise<void>;
  drainWorker(model: string, worker: string, isDraining: boolean): Promise<void>;
  /** Resolves with the id of the new request. */
  retry(id: string): Promise<string>;
  drop(id: string): Promise<void>;
  /** Empty: none. */
  setKey(key: string): void;
}

export interface OpenAdminSessionOptions {
  /** The page's own address. */
  location: string;
  storage: PageStorage;
}

export function openAdminSession({ location, storage }: OpenAdminSessionOptions): AdminSession {
  const ask = async <Body>(method: 'GET' | 'POST', path: string): Promise<Body> => {
    const key = storage.getItem(keyName);
    const headers = key === null ? {} : { authorization: `Bearer ${key}` };
    // Beside this page, so that a prefix of a proxy is kept.
    const url = new URL(path, new URL('.', location));
    return readAnswer<Body>(await send(url, { method, headers, signal: AbortSignal.timeout(timeoutMs) }));
  };
  return {
    async readSystem() {
      const [status, { data: dead }] = await Promise.all([
        ask<Omit<SystemStatus, 'dead'>>('GET', 'status'),
        ask<{ data: DeadRequest[] }>('GET', 'admin/dead-requests'),
      ]);
      return { ...status, dead };
    },
    pauseModel: (model, isPaused) => ask('POST', pathOf('admin', 'models', model, isPaused ? 'pause' : 'resume')),
    drainWorker: (model, worker, isDraining) =>
      ask('POST', pathOf('admin', 'models', model, 'workers', worker, isDraining ? 'drain' : 'resume')),
    retry: async (id) =>
      (await ask<{ request_id: string }>('POST', pathOf('admin', 'dead-requests', id, 'retry'))).request_id,
    drop: (id) => ask('POST', pathOf('admin', 'dead-requests', id, 'drop')),
    setKey(key) {
      if (key === '') storage.removeItem(keyName);
      else storage.setItem(keyName, key);
    },
  };
}

/** Whether the server wants an admin key, or another one. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ClientError && (error.status === 401 || error.status === 403);
}

function pathOf(...names: string[]): string {
  return names.map(encodeURIComponent).join('/');
}

async function send(url: URL, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (cause) {
    const isLate = cause instanceof DOMException && cause.name === 'TimeoutError';
    throw new ClientError({ code: isLate ? 'timeout' : 'connection_failed', message: String(cause), cause });
  }
}

async function readAnswer<Body>(response: Response): Promise<Body> {
  const { status, ok } = response;
  const body = (await response.json().catch(() => undefined)) as
    | { error?: { code?: string; message?: string } }
    | undefined;
  if (ok && body !== undefined) return body as Body;
  const { code = ok ? 'invalid_answer' : `http_${status}`, message = `HTTP ${status}` } = body?.error ?? {};
  throw new ClientError({ status, code, message });
}

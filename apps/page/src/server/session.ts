import { type Client, type ClientOptions, createClient } from '@darkroom/client';
import type { PageStorage } from '../shell/page-storage.ts';

export interface OpenSessionOptions extends Omit<ClientOptions, 'baseUrl' | 'apiKey'> {
  storage: PageStorage;
  keyName: string;
}

export type Session = ReturnType<typeof openSession>;

/** The way to the server, with a key of this browser. */
export function openSession({ storage, keyName, ...options }: OpenSessionOptions) {
  // Beside this page, so that a prefix of a proxy is kept; with a slash at the end.
  const baseUrl = new URL('.', location.href).href;
  return {
    baseUrl,
    /** With the key of now. */
    get client(): Client {
      return createClient({ ...options, baseUrl, apiKey: storage.getItem(keyName) ?? undefined });
    },
    get hasKey(): boolean {
      return storage.getItem(keyName) !== null;
    },
    /** Empty: none. */
    setKey(key: string): void {
      if (key === '') storage.removeItem(keyName);
      else storage.setItem(keyName, key);
    },
  };
}

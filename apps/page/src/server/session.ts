import { type Client, type ClientOptions, createClient } from '@darkroom/client';
import type { PageStorage } from '../shell/page-storage.ts';

export interface OpenSessionOptions extends Omit<ClientOptions, 'baseUrl' | 'apiKey'> {
  storage: PageStorage;
  keyName: string;
}

export type Session = ReturnType<typeof openSession>;

/** Opens a session with the API key of this browser. */
export function openSession({ storage, keyName, ...options }: OpenSessionOptions) {
  // The page's own directory, with a slash at the end, so that a proxy's path prefix is preserved.
  const baseUrl = new URL('.', location.href).href;
  return {
    baseUrl,
    /** A client with the current key. */
    get client(): Client {
      return createClient({ ...options, baseUrl, apiKey: storage.getItem(keyName) ?? undefined });
    },
    get hasKey(): boolean {
      return storage.getItem(keyName) !== null;
    },
    /** Stores the key; an empty key removes it. */
    setKey(key: string): void {
      if (key === '') storage.removeItem(keyName);
      else storage.setItem(keyName, key);
    },
  };
}

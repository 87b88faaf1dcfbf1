import { type Client, createClient } from '@darkroom/client';
import type { PageStorage } from './page-storage.ts';
import { type Connection, watchedFetch } from './watched-fetch.ts';

const keyName = 'darkroom.api-key';

/** The way to the server, with the key of this browser. */
export interface Session {
  /** Where the API is, with a slash at the end: beside this page, so that a prefix of a proxy is kept. */
  readonly baseUrl: string;
  /** Another one after `setApiKey`. */
  readonly client: Client;
  readonly hasKey: boolean;
  /** Empty: none. */
  setApiKey(key: string): void;
}

export interface OpenSessionOptions {
  /** The page's own address. */
  location: string;
  storage: PageStorage;
  onConnection: (connection: Connection) => void;
}

export function openSession({ location, storage, onConnection }: OpenSessionOptions): Session {
  const baseUrl = new URL('.', location).href;
  const fetch = watchedFetch(onConnection);
  const connect = (): Client => {
    const apiKey = storage.getItem(keyName) ?? undefined;
    // For as long as somebody looks at it; the banner says what is wrong.
    return createClient({ baseUrl, apiKey, fetch, maxRetries: Number.POSITIVE_INFINITY });
  };
  let client = connect();
  return {
    baseUrl,
    get client() {
      return client;
    },
    get hasKey() {
      return storage.getItem(keyName) !== null;
    },
    setApiKey(key) {
      if (key === '') storage.removeItem(keyName);
      else storage.setItem(keyName, key);
      client = connect();
    },
  };
}

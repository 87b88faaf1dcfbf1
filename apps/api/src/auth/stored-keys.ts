/** Keeps the keys that are stored in Redis in the map of this replica, so that checking a key needs no round trip. */
import { type Logger, PeriodicLoop } from '@darkroom/service';
import { readKeys, readKeysVersion, type StoreConnection, type StoredKey } from '@darkroom/store';
import type { ApiKey } from '../http/api-env.ts';
import { createStoreGuard, isStoreUnavailable } from '../server/store-guard.ts';
import { type ApiKeys, createRevocation, isOpenToAll, replaceKeys } from './api-keys.ts';

export interface StoredKeysOptions {
  store: StoreConnection;
  /** Keys of the settings and of API_KEYS_FILE, to which the stored keys are added. */
  keys: ApiKeys;
  log: Logger;
  /** Timeout of Redis, ms. */
  waitMs?: number;
}

/** A revoked key is rejected by all replicas after this time, ms. */
const intervalMs = 1000;
const defaultWaitMs = 3000;

export class StoredKeys {
  readonly #options: StoredKeysOptions;
  readonly #withStore;
  #version = '';
  /**
   * False on a server without API_KEYS and API_KEYS_FILE: it is open to every client, and a stored key would lock out
   * all clients that send none.
   */
  readonly isUsed: boolean;

  constructor(options: StoredKeysOptions) {
    this.#options = options;
    const { waitMs = defaultWaitMs } = options;
    this.#withStore = createStoreGuard(options.store, { redisMs: waitMs, bytesMs: waitMs });
    this.isUsed = !isOpenToAll(options.keys);
  }

  loop(): PeriodicLoop {
    const { log } = this.#options;
    return new PeriodicLoop({ name: 'stored keys', intervalMs, runOnce: () => this.runOnce(), log });
  }

  /** Reads the stored keys if they changed. If Redis is unavailable, all known keys stay valid. */
  async runOnce(): Promise<void> {
    if (!this.isUsed) return;
    try {
      if ((await this.#withStore(readKeysVersion)) === this.#version) return;
      const { version, keys: stored } = await this.#withStore(readKeys);
      const { keys, log } = this.#options;
      const changes = replaceKeys(keys, new Map(stored.map((key) => [key.sha256, toApiKey(key)])), { isStored: true });
      this.#version = version;
      log.info(changes, 'API keys of Redis reloaded');
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
    }
  }
}

function toApiKey({ name, weight, requestsPerMinute, openRequests }: StoredKey): ApiKey {
  return {
    name,
    weight,
    requestsPerMinute: requestsPerMinute ?? undefined,
    openRequests: openRequests ?? undefined,
    isAdmin: false,
    isStored: true,
    revocation: createRevocation(),
  };
}

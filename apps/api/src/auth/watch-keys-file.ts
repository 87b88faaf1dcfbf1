/** Reloads API_KEYS_FILE when it changes, so that keys are revoked or added without a restart. */
import { stat } from 'node:fs/promises';
import { ConfigError } from '@darkroom/config';
import { type Logger, PeriodicLoop } from '@darkroom/service';
import { type ApiKeys, type KeySettings, loadApiKeys, replaceKeys } from './api-keys.ts';

export interface KeysFileOptions {
  settings: KeySettings;
  /** Keys loaded at the start. */
  keys: ApiKeys;
  log: Logger;
}

/** Polls the file: mounted secrets are replaced by moving a symlink, which `fs.watch` does not report. */
const intervalMs = 1000;

export class KeysFileWatch {
  readonly #options: KeysFileOptions;
  #version: string | undefined;

  constructor(options: KeysFileOptions) {
    this.#options = options;
  }

  loop(): PeriodicLoop {
    const { log } = this.#options;
    return new PeriodicLoop({ name: 'keys file', intervalMs, runOnce: () => this.runOnce(), log });
  }

  /** Reloads the keys if the file changed. An invalid file is logged once and changes nothing. */
  async runOnce(): Promise<void> {
    const { settings, keys, log } = this.#options;
    const version = await versionOf(settings.apiKeysFile);
    if (version === this.#version) return;
    this.#version = version;
    try {
      const changes = replaceKeys(keys, loadApiKeys(settings));
      if (changes.added + changes.removed + changes.changed > 0) log.info(changes, 'API keys reloaded');
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      log.error({ problems: error.problems }, 'API_KEYS_FILE is invalid: previous keys stay active');
    }
  }
}

/** Returns a version that changes with every write: unlike mtime, ctime cannot be set. */
async function versionOf(path: string | undefined): Promise<string> {
  if (path === undefined) return '';
  try {
    const { ino, size, ctimeNs } = await stat(path, { bigint: true });
    return `${ino} ${size} ${ctimeNs}`;
  } catch {
    return 'missing';
  }
}

/** Detects that files of a loaded model were replaced on disk, and reports it: a restart of the worker loads them. */
import { PeriodicLoop } from '@darkroom/service';
import type { EngineLife } from '../engine/engine-life.ts';
import type { EngineMeters } from '../meters/engine-meters.ts';
import type { WorkerOptions } from './worker-options.ts';

export interface FileWatchOptions extends Pick<WorkerOptions, 'info' | 'files' | 'log'> {
  model: string;
  engine: Pick<EngineLife, 'state'>;
  meters: Pick<EngineMeters, 'steps'>;
  /** Publishes the worker's state and info. */
  register: () => Promise<unknown>;
}

const checkIntervalMs = 10_000;
const maxNames = 3;

export class FileWatch extends PeriodicLoop {
  readonly #options: FileWatchOptions;

  constructor(options: FileWatchOptions) {
    const { log } = options;
    super({ name: 'model files', intervalMs: checkIntervalMs, runOnce: () => this.checkOnce(), log });
    this.#options = options;
  }

  /** Digest of the model's files: rows resume only from checkpoints with the same digest. Empty if unknown. */
  get modelDigest(): string {
    return this.#options.files?.digest ?? '';
  }

  /** Info for the list of workers, including changed files. */
  get info(): WorkerOptions['info'] {
    const { info } = this.#options;
    const changed = this.#changed;
    if (changed.length === 0) return { ...info };
    const more = changed.length - maxNames;
    return { ...info, changedFiles: changed.slice(0, maxNames).join(', ') + (more > 0 ? ` and ${more} more` : '') };
  }

  /** Checks the files and reports each change once. */
  async checkOnce(): Promise<void> {
    const { files, model, register, meters, log } = this.#options;
    const isNew = this.#isLoaded && (await files?.check());
    const changed = this.#changed;
    meters.steps.filesChanged(changed.length);
    if (isNew !== true) return;
    if (changed.length > 0)
      log.warn({ model, files: changed }, 'model files were replaced on disk; serving the loaded ones until a restart');
    await register();
  }

  /** A sleeping model has none of the old files in memory. */
  get #isLoaded(): boolean {
    const { state } = this.#options.engine;
    return state === 'ready' || state === 'vacating';
  }

  get #changed(): readonly string[] {
    return (this.#isLoaded && this.#options.files?.changed) || [];
  }
}

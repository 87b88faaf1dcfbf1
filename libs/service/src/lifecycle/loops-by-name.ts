import { PeriodicLoop, type PeriodicLoopOptions } from './periodic-loop.ts';
import { BaseService } from './service.ts';

/** `name` shows in log lines, before the name of the loop. */
export interface LoopsByNameOptions extends Pick<PeriodicLoopOptions, 'name' | 'intervalMs' | 'log'> {
  /** The names there are; those that come get a loop, none is taken away. */
  discover: () => Promise<readonly string[]>;
  /** How often that is asked, ms. */
  discoverEveryMs: number;
  runOnce: (name: string) => Promise<unknown>;
  /** Calls `wake` when a turn is due before its time; its result ends that. Asked for before a name's first turn, till it succeeds. */
  listen?: (name: string, wake: () => void) => Promise<() => void>;
}

/**
 * A {@link PeriodicLoop} for each of a growing set of names, such as models: one whose server does not answer keeps none
 * of the others waiting.
 */
export class LoopsByName extends BaseService<LoopsByNameOptions> {
  readonly #loops = new Map<string, PeriodicLoop>();
  readonly #listening = new Map<string, () => void>();
  readonly #discovering: PeriodicLoop;

  constructor(options: LoopsByNameOptions) {
    super(options);
    const { name, discoverEveryMs: intervalMs, log } = options;
    const runOnce = (): Promise<void> => this.#discover();
    this.#discovering = new PeriodicLoop({ name: `${name}: discover`, intervalMs, runOnce, log });
  }

  /** Runs a turn of this name's loop now, as `PeriodicLoop` does; nothing for a name that is not known yet. */
  async trigger(name: string): Promise<void> {
    await this.#loops.get(name)?.trigger();
  }

  protected override async onStart(): Promise<void> {
    await this.#discovering.start();
  }

  protected override async onStop(): Promise<void> {
    const loops = [this.#discovering, ...this.#loops.values()];
    await Promise.all(loops.map((loop) => loop.stop()));
    for (const stopListening of this.#listening.values()) stopListening();
    this.#listening.clear();
    this.#loops.clear();
  }

  async #discover(): Promise<void> {
    const { discover, name, intervalMs, log } = this.options;
    for (const each of await discover()) {
      if (this.#loops.has(each)) continue;
      const loop = new PeriodicLoop({ name: `${name} ${each}`, intervalMs, runOnce: () => this.#runOnce(each), log });
      this.#loops.set(each, loop);
      await loop.start();
    }
  }

  async #runOnce(name: string): Promise<void> {
    const { listen, runOnce } = this.options;
    if (listen !== undefined && !this.#listening.has(name))
      this.#listening.set(name, await listen(name, () => void this.trigger(name)));
    await runOnce(name);
  }
}

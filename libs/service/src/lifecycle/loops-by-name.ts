import { valueOfKey } from '@darkroom/core';
import { PeriodicLoop, type PeriodicLoopOptions } from './periodic-loop.ts';
import { BaseService } from './service.ts';

/** `name` appears in log lines as a prefix of the loop's name. */
export interface LoopsByNameOptions extends Pick<PeriodicLoopOptions, 'name' | 'intervalMs' | 'log'> {
  /** Returns the current names: new names get a loop, loops of removed names are stopped. */
  discover: () => Promise<readonly string[]>;
  /** Interval between two calls of `discover`, ms. */
  discoverEveryMs: number;
  runOnce: (name: string) => Promise<unknown>;
  /** Subscribes to wake-ups before a name's first tick, with retries; returns the unsubscribe function. */
  listen?: (name: string, wake: () => void) => Promise<() => void>;
}

/**
 * Runs a {@link PeriodicLoop} for each of a changing set of names, such as models. A loop whose server does not answer
 * does not delay the others.
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

  /** Runs a tick of this name's loop now, as `PeriodicLoop.trigger` does; ignores unknown names. */
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
    const names = await discover();
    for (const each of this.#loops.keys()) if (!names.includes(each)) this.#drop(each);
    for (const each of names) {
      if (this.#loops.has(each)) continue;
      const loop = new PeriodicLoop({ name: `${name} ${each}`, intervalMs, runOnce: () => this.#runOnce(each), log });
      this.#loops.set(each, loop);
      await loop.start();
    }
  }

  /** Stops a loop. It stays in the map until its tick has ended, which may be waiting for a server. */
  #drop(name: string): void {
    const loop = valueOfKey(this.#loops, name);
    this.#listening.get(name)?.();
    this.#listening.delete(name);
    void loop.stop().then(() => this.#loops.delete(name));
  }

  async #runOnce(name: string): Promise<void> {
    const { listen, runOnce } = this.options;
    if (listen !== undefined && !this.#listening.has(name))
      this.#listening.set(name, await listen(name, () => void this.trigger(name)));
    await runOnce(name);
  }
}

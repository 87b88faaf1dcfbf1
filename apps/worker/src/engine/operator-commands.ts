import type { InboxMessage } from '@darkroom/store';
import type { HotSwap } from '../files/hot-swap.ts';
import type { EngineLife } from './engine-life.ts';

export type OperatorCommand = Extract<InboxMessage, { type: 'sleep' | 'wake' | 'reload' }>;

/** What operators ask of a worker. */
export class OperatorCommands {
  readonly #engine: EngineLife;
  readonly #swap: HotSwap;

  constructor({ engine, swap }: { engine: EngineLife; swap: HotSwap }) {
    this.#engine = engine;
    this.#swap = swap;
  }

  /** Begins it. */
  obey({ type }: OperatorCommand): void {
    if (type === 'reload') this.#swap.ask();
    else void this.#engine[type]();
  }
}

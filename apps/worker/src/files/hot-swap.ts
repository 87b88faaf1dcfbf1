/**
 * Files of a model that are replaced while it is loaded: noticed, told, and loaded anew when an operator says so, by one worker of the
 * model after the other.
 */
import { PeriodicLoop } from '@darkroom/service';
import { leaveReloadTurn, takeReloadTurn, type WorkerIdentity } from '@darkroom/store';
import type { EngineLife } from '../engine/engine-life.ts';
import type { EngineMeters } from '../meters/engine-meters.ts';
import type { WorkerOptions } from '../worker-options.ts';

export interface HotSwapOptions extends Pick<WorkerOptions, 'store' | 'info' | 'files' | 'heartbeatMs' | 'log'> {
  identity: WorkerIdentity;
  engine: EngineLife;
  meters: Pick<EngineMeters, 'steps'>;
  /** Tells the system. */
  register: () => Promise<unknown>;
}

const lookIntervalMs = 10_000;
/** A turn of a worker that is not heard of for so long is over. */
const beatsPerTurn = 5;
const mostNames = 3;

export class HotSwap extends PeriodicLoop {
  readonly #options: HotSwapOptions;
  #isAsked = false;
  #hasTurn = false;

  constructor(options: HotSwapOptions) {
    const { log } = options;
    super({ name: 'model files', intervalMs: lookIntervalMs, runOnce: () => this.checkOnce(), log });
    this.#options = options;
  }

  /** What rows are made of: those of another model do not go on from their checkpoints. Empty where nobody knows. */
  get origin(): string {
    return this.#options.files?.digest ?? '';
  }

  /** For the list of workers. */
  get info(): WorkerOptions['info'] {
    const { engine, files, info } = this.#options;
    const { state } = engine;
    const changed = files?.changed ?? [];
    if (changed.length === 0 || state === 'asleep' || state === 'loading') return { ...info };
    const more = changed.length - mostNames;
    const changedFiles = changed.slice(0, mostNames).join(', ') + (more > 0 ? ` and ${more} more` : '');
    return { ...info, changedFiles };
  }

  /** Looks at the files, and says once of each change that there is one. */
  async checkOnce(): Promise<void> {
    const { engine, files, identity, register, meters, log } = this.#options;
    // One that sleeps has none of them.
    const isLoaded = engine.state === 'ready' || engine.state === 'vacating';
    const isNew = isLoaded && (await files?.look());
    const changed = (isLoaded && files?.changed) || [];
    meters.steps.filesChanged(changed.length);
    if (isNew !== true) return;
    if (changed.length > 0)
      log.warn(
        { model: identity.model, files: changed },
        'files were replaced: what is loaded is served until a reload',
      );
    await register();
  }

  /** It is to load its model anew, when it is its turn. */
  ask(): void {
    this.#isAsked = true;
    const { log } = this.#options;
    this.keepTurn().catch((error: unknown) => log.warn({ err: error }, 'could not take its turn yet'));
  }

  /** To be called with each heartbeat: takes the turn, or goes on having it. A round trip while it is asked to reload. */
  async keepTurn(): Promise<void> {
    const { store, identity, engine, heartbeatMs, log } = this.#options;
    if ((!this.#isAsked && !this.#hasTurn) || engine.isStopping) return;
    // A turn that ends while this is asked is not another one.
    const hadIt = this.#hasTurn;
    const hasIt = await takeReloadTurn(store, identity, beatsPerTurn * heartbeatMs);
    if (!hasIt || hadIt || this.#hasTurn) return;
    this.#hasTurn = true;
    this.#isAsked = false;
    log.info({ model: identity.model }, 'loads its model anew: no new leases until then');
    void engine.reload().then(() => this.#leaveTurn());
  }

  async #leaveTurn(): Promise<void> {
    const { store, identity, log } = this.#options;
    this.#hasTurn = false;
    await leaveReloadTurn(store, identity).catch((error: unknown) =>
      log.warn({ err: error }, 'could not end its turn'),
    );
  }
}

import { BaseService, PeriodicLoop } from '@darkroom/service';
import { listModelIds } from '@darkroom/store';
import { ModelFormer, type ModelFormerOptions } from './model-former.ts';

export type BatchFormerOptions = Omit<ModelFormerOptions, 'model'>;

/** How soon a model that is new to the system gets its former. */
const discoveryMs = 500;

/** One former for each model that the system knows. */
export class BatchFormer extends BaseService {
  readonly #options: BatchFormerOptions;
  readonly #formers = new Map<string, ModelFormer>();
  readonly #discovering: PeriodicLoop;

  constructor(options: BatchFormerOptions) {
    super();
    this.#options = options;
    this.#discovering = new PeriodicLoop({
      name: 'discover models',
      intervalMs: discoveryMs,
      runOnce: () => this.discoverOnce(),
      log: options.log,
    });
  }

  /** Starts a former for every model that has none. */
  async discoverOnce(): Promise<void> {
    for (const model of await listModelIds(this.#options.store)) {
      if (this.#formers.has(model)) continue;
      const former = new ModelFormer({ ...this.#options, model });
      this.#formers.set(model, former);
      try {
        await former.start();
        this.#options.log.info({ model }, 'forming batches');
      } catch (error) {
        // It must not count as served; the next turn tries again, and the other models are none the worse.
        this.#formers.delete(model);
        this.#options.log.error({ model, err: error }, 'could not start forming batches');
      }
    }
  }

  protected override async onStart(): Promise<void> {
    await this.#discovering.start();
  }

  protected override async onStop(): Promise<void> {
    await this.#discovering.stop();
    await Promise.all([...this.#formers.values()].map((former) => former.stop()));
    this.#formers.clear();
  }
}

import { BaseService } from '@darkroom/service';
import type { EventHub, StoreConnection } from '@darkroom/store';

/** Closes the connections to Redis when the process stops. They open by themselves. */
export class StoreService extends BaseService {
  readonly #store: StoreConnection;
  readonly #hub: EventHub;

  constructor(store: StoreConnection, hub: EventHub) {
    super();
    this.#store = store;
    this.#hub = hub;
  }

  protected override async onStart(): Promise<void> {}

  protected override async onStop(): Promise<void> {
    this.#hub.close();
    await this.#store.close();
  }
}

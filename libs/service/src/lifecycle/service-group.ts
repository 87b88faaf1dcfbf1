import { BaseService, type Service } from './service.ts';

/** Services that start in the order given and stop in the opposite order. */
export class ServiceGroup extends BaseService {
  readonly #services: readonly Service[];

  constructor(services: readonly Service[]) {
    super();
    this.#services = services;
  }

  protected override async onStart(): Promise<void> {
    for (const service of this.#services) await service.start();
  }

  /** One that fails to stop does not keep the others from it; throws an AggregateError after all were asked. */
  protected override async onStop(): Promise<void> {
    const failures: unknown[] = [];
    for (const service of this.#services.toReversed()) {
      try {
        await service.stop();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `${failures.length} of ${this.#services.length} services did not stop cleanly`,
      );
  }
}

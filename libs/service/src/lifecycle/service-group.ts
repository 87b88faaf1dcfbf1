import { BaseService, type Service } from './service.ts';

/** Services that start in the order given and stop in the opposite order. */
export class ServiceGroup extends BaseService<readonly Service[]> {
  protected override async onStart(): Promise<void> {
    for (const service of this.options) await service.start();
  }

  /** One that fails to stop does not keep the others from it; throws an AggregateError after all were asked. */
  protected override async onStop(): Promise<void> {
    const services = this.options;
    const failures: unknown[] = [];
    for (const service of services.toReversed()) await service.stop().catch((error: unknown) => failures.push(error));
    const count = `${failures.length} of ${services.length}`;
    if (failures.length > 0) throw new AggregateError(failures, `${count} services did not stop cleanly`);
  }
}

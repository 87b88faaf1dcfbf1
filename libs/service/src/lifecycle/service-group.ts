import { BaseService, type Service } from './service.ts';

/** Starts services in order and stops them in reverse order. */
export class ServiceGroup extends BaseService<readonly Service[]> {
  protected override async onStart(): Promise<void> {
    for (const service of this.options) await service.start();
  }

  /** Stops all services even if some fail; then throws an AggregateError. */
  protected override async onStop(): Promise<void> {
    const services = this.options;
    const failures: unknown[] = [];
    for (const service of services.toReversed()) await service.stop().catch((error: unknown) => failures.push(error));
    const count = `${failures.length} of ${services.length}`;
    if (failures.length > 0) throw new AggregateError(failures, `${count} services did not stop cleanly`);
  }
}

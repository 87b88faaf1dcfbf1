import { BaseService, type Service } from './service.ts';

/** Something that needs no start but has to be closed, such as a connection, as a member of a ServiceGroup. */
export function closingService(close: () => void | Promise<void>): Service {
  return new (class extends BaseService {
    protected override async onStart(): Promise<void> {}
    protected override async onStop(): Promise<void> {
      await close();
    }
  })();
}

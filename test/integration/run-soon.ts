import type { StoreConnection } from '@darkroom/store';
import { vi } from 'vitest';
import { type RunningRequest, runNext } from '../../apps/api/src/testing/fake-worker.ts';

/** Starts the next request once one is queued. */
export function runSoon(store: StoreConnection): Promise<RunningRequest> {
  return vi.waitFor(() => runNext(store), { timeout: 10_000 });
}

import type { BatchPolicy } from '@darkroom/batching';
import { createEventHub, type EventHub, type StoreConnection } from '@darkroom/store';
import { silentLogger } from '@darkroom/testing';
import { onTestFinished } from 'vitest';
import { BatchFormer, type BatchFormerOptions } from '../../apps/batch-former/src/batch-former.ts';

type Options = Partial<BatchPolicy> & Partial<Pick<BatchFormerOptions, 'slowTickMs' | 'metrics'>>;

/** Creates a batch-former that stops when the test ends. By default no tick runs because of time. */
export function openFormer(
  store: StoreConnection,
  { slowTickMs = 3_600_000, metrics, ...policy }: Options = {},
): { former: BatchFormer; wakeups: EventHub; runOnce: (model?: string) => Promise<unknown> } {
  const wakeups = createEventHub(store);
  const all = { maxSize: 8, timeoutMs: 0, ...policy };
  const former = new BatchFormer({ store, wakeups, policy: all, slowTickMs, metrics, log: silentLogger() });
  onTestFinished(async () => {
    await former.stop();
    wakeups.close();
  });
  return { former, wakeups, runOnce: (model = 'tiny') => former.runOnce(model) };
}

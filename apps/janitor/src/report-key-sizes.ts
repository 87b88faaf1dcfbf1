import type { Metrics } from '@darkroom/service';
import type { KeySize } from '@darkroom/store';

/** Shows what the last sweep for leaks has seen of the models' keys. */
export function createKeySizeReport(metrics: Metrics): (sizes: readonly KeySize[]) => void {
  const labels = ['model', 'kind'] as const;
  const bytes = metrics.gauge({
    name: 'darkroom_redis_bytes',
    help: 'What keys of a kind take in Redis, estimated from 20 of each at the last sweep for leaks.',
    labels,
  });
  const keys = metrics.gauge({
    name: 'darkroom_redis_keys',
    help: 'Keys of a kind, counted at the last sweep for leaks.',
    labels,
  });
  return (sizes) => {
    for (const { model, kind, ...size } of sizes) {
      bytes.set({ model, kind }, size.bytes);
      keys.set({ model, kind }, size.keys);
    }
  };
}

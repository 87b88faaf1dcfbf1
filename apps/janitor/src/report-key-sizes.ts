import type { Metrics } from '@darkroom/service';
import type { KeySize } from '@darkroom/store';

/** Shows what the last sweep for leaks has seen of a model's keys. */
export type ReportKeySizes = (model: string, sizes: ReadonlyMap<string, KeySize>) => void;

export function createKeySizeReport(metrics: Metrics): ReportKeySizes {
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
  const known = new Set<string>();
  return (model, sizes) => {
    for (const kind of sizes.keys()) known.add(kind);
    for (const kind of known) {
      const size = sizes.get(kind);
      bytes.set({ model, kind }, size?.bytes ?? 0);
      keys.set({ model, kind }, size?.keys ?? 0);
    }
  };
}

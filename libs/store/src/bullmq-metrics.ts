/** What BullMQ says of its queues in Prometheus' format: of each queue a page, made into one here. */
import { listModelIds } from './model-registry.ts';
import { webhooksTag } from './keys.ts';
import type { StoreConnection } from './store-connection.ts';

/** The queues of all models, and that of webhooks as the model `_webhooks`. `labels` go on every series. */
export async function exportBullmqMetrics(
  store: StoreConnection,
  labels: Readonly<Record<string, string>>,
): Promise<string> {
  const models = [...(await listModelIds(store)), webhooksTag];
  const pages = await Promise.all(
    models.map((model) => store.queueOf(model).exportPrometheusMetrics({ ...labels, model })),
  );
  return mergePages(pages);
}

/** A family may stand on a page once only, with all its series. */
function mergePages(pages: readonly string[]): string {
  const heads = new Map<string, Set<string>>();
  const series = new Map<string, string[]>();
  for (const line of pages.flatMap((page) => page.split('\n'))) {
    const family = /^(?:# (?:HELP|TYPE) )?(?<name>\w+)/.exec(line)?.groups?.['name'];
    if (family === undefined) continue;
    if (line.startsWith('#')) heads.set(family, (heads.get(family) ?? new Set()).add(line));
    else series.set(family, [...(series.get(family) ?? []), line]);
  }
  return [...heads].flatMap(([family, head]) => [...head, ...(series.get(family) ?? []), '']).join('\n');
}

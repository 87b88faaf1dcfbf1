/** What BullMQ says of the queue of webhook deliveries in Prometheus' format, as the model `_webhooks`. `labels` go on every series. */
import type { StoreConnection } from '../connection/store-connection.ts';

export async function exportBullmqMetrics(
  store: StoreConnection,
  labels: Readonly<Record<string, string>>,
): Promise<string> {
  const page = await store.deliveries().exportPrometheusMetrics({ ...labels, model: '_webhooks' });
  return `${page.trimEnd()}\n`;
}

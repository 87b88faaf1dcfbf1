import type { AdminSession } from './admin-session.ts';
import type { QueueStatus, SystemStatus } from './system-status.ts';
import type { TableOptions, Toned } from './table.ts';
import { spanWords } from './time-words.ts';

/** What becomes of requests, model by model, and the buttons that pause one and have its files loaded anew. */
export function modelsTable({ pauseModel, reloadModel }: AdminSession): TableOptions<QueueStatus> {
  return {
    name: 'models',
    itemsOf: ({ queues }) => queues,
    keyOf: ({ model }) => model,
    nameOf: ({ model }) => model,
    wordsOf: (queue, status) => ({
      model: queue.model,
      state: stateOf(queue, status),
      queued: String(queue.queued),
      oldest: queue.oldest_age_s === null ? '–' : spanWords(queue.oldest_age_s),
      running: String(queue.running),
      finished: queue.per_minute.finished.toFixed(1),
      failed: queue.per_minute.failed.toFixed(1),
      ended: listWords({ ok: queue.ended.succeeded, ...queue.ended, succeeded: 0 }),
      requeued: listWords(queue.requeued).replaceAll('_', ' '),
      pause: queue.paused ? 'Resume' : 'Pause',
      reload: 'Reload',
    }),
    actions: {
      async reload({ model }) {
        await reloadModel(model);
        return `The workers of ${model} load its files anew, one after the other.`;
      },
      async pause({ model, paused }) {
        await pauseModel(model, !paused);
        return paused ? `${model} goes on.` : `${model} is paused: what runs goes on to its end, what is queued waits.`;
      },
    },
  };
}

function stateOf({ model, paused }: QueueStatus, { workers }: SystemStatus): Toned {
  if (paused) return ['paused', 'held'];
  const isServed = workers.some((worker) => worker.model === model && worker.loaded && !worker.draining);
  return isServed ? ['serving', 'good'] : ['no worker', 'bad'];
}

/** `12 ok, 1 failed`: what there is none of is left out. */
function listWords(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []));
  return words.join(', ') || '–';
}

import { findElement, partOf } from '../shell/find-element.ts';
import type { AdminSession } from './admin-session.ts';
import type { QueueView, SystemStatus } from './system-status.ts';
import type { TableOptions, Toned } from './table.ts';
import { spanWords } from './time-words.ts';

/** The table of queues by model, with buttons to pause, restart and forget a model. */
export function modelsTable({ pauseModel, restartModel, forgetModel }: AdminSession): TableOptions<QueueView> {
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
      restart: 'Restart',
    }),
    finish(row, { workers }) {
      partOf(row, 'forget', HTMLButtonElement).hidden = workers > 0;
    },
    actions: {
      async forget({ model }) {
        await forgetModel(model);
        // Move the focus out of the row, which will be removed.
        findElement(document, '#models-title', HTMLHeadingElement).focus();
        return `${model} is forgotten, until a worker registers it again.`;
      },
      async restart({ model }) {
        await restartModel(model);
        return `The workers of ${model} restart with its current files, one after the other.`;
      },
      async pause({ model, paused }) {
        await pauseModel(model, !paused);
        return paused ? `${model} is resumed.` : `${model} is paused: running requests finish, queued ones wait.`;
      },
    },
  };
}

function stateOf({ model, paused }: QueueView, { workers }: SystemStatus): Toned {
  if (paused) return ['paused', 'held'];
  const isServed = workers.some((worker) => worker.model === model && worker.loaded && !worker.draining);
  return isServed ? ['serving', 'good'] : ['no worker', 'bad'];
}

/** Formats counts such as `12 ok, 1 failed`; omits zeros. */
function listWords(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []));
  return words.join(', ') || '–';
}

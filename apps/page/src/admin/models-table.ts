import { findElement } from '../find-element.ts';
import type { ActionRunner } from './action-runner.ts';
import type { AdminSession } from './admin-session.ts';
import { createKeyedRows, partOf, setText } from './keyed-rows.ts';
import { showState, type Tone } from './show-state.ts';
import type { QueueStatus, SystemStatus } from './system-status.ts';
import { spanWords } from './time-words.ts';

/** A queue, and whether a live worker serves it. */
type ModelItem = QueueStatus & { isServed: boolean };

/** What becomes of requests, model by model, and the button that pauses one. */
export function createModelsTable(session: AdminSession, run: ActionRunner): (status: SystemStatus) => void {
  const showRows = createKeyedRows<ModelItem>({
    body: findElement(document, '#models', HTMLTableSectionElement),
    template: 'model-row',
    keyOf: ({ model }) => model,
    prepare: (row, current) =>
      run.onClick(partOf(row, 'pause', HTMLButtonElement), async () => {
        const { model, paused } = current();
        await session.pauseModel(model, !paused);
        return paused ? `${model} goes on.` : `${model} is paused: what runs goes on to its end, what is queued waits.`;
      }),
    fill,
  });
  const none = findElement(document, '#no-models', HTMLParagraphElement);
  return ({ queues, workers }) => {
    const served = new Set(workers.filter(({ loaded, draining }) => loaded && !draining).map(({ model }) => model));
    showRows(queues.map((queue) => ({ ...queue, isServed: served.has(queue.model) })));
    none.hidden = queues.length > 0;
  };
}

function fill(row: HTMLTableRowElement, item: ModelItem): void {
  const { model, paused, ended, requeued } = item;
  setText(row, 'model', model);
  const [tone, words] = stateOf(item);
  showState(row, tone, words);
  setText(row, 'queued', String(item.queued));
  setText(row, 'oldest', item.oldest_age_s === null ? '–' : spanWords(item.oldest_age_s));
  setText(row, 'running', String(item.running));
  setText(row, 'finished', item.per_minute.finished.toFixed(1));
  setText(row, 'failed', item.per_minute.failed.toFixed(1));
  setText(row, 'ended', listWords({ ok: ended.succeeded, ...ended, succeeded: 0 }));
  setText(
    row,
    'requeued',
    listWords({
      'worker lost': requeued.worker_lost,
      'engine failed': requeued.engine_failed,
      'worker stopped': requeued.worker_stopped,
    }),
  );
  setText(row, 'pause', paused ? 'Resume' : 'Pause');
  partOf(row, 'pause', HTMLButtonElement).ariaLabel = `${paused ? 'Resume' : 'Pause'} ${model}`;
}

function stateOf({ paused, isServed }: ModelItem): [Tone, string] {
  if (paused) return ['held', 'paused'];
  return isServed ? ['good', 'serving'] : ['bad', 'no worker'];
}

/** `12 ok, 1 failed`: what there is none of is left out. */
function listWords(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []));
  return words.join(', ') || '–';
}

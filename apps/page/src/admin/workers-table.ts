import { findElement, partOf } from '../shell/find-element.ts';
import type { AdminSession } from './admin-session.ts';
import type { WorkerView } from './system-status.ts';
import type { TableOptions, Toned } from './table.ts';
import { agoWords } from './time-words.ts';

/** The table of workers, with buttons to drain and sleep. */
export function workersTable({ drainWorker, commandWorker }: AdminSession): TableOptions<WorkerView> {
  return {
    name: 'workers',
    itemsOf({ workers }) {
      const count = findElement(document, '#workers-count', HTMLParagraphElement);
      const rows = workers.reduce((sum, worker) => sum + worker.rows, 0);
      const taken = workers.reduce((sum, worker) => sum + takenRows(worker), 0);
      count.textContent = workers.length === 0 ? '' : `${workers.length}, with ${taken} of ${rows} rows in use`;
      return workers;
    },
    keyOf: ({ model, id }) => `${model} ${id}`,
    nameOf: ({ id }) => id,
    wordsOf: (worker, { time }) => ({
      id: worker.id,
      host: worker.host ?? '',
      model: worker.model,
      state: stateOf(worker),
      device: worker.device ?? '–',
      rows: `${takenRows(worker)} of ${worker.rows}`,
      step: stepWords(worker),
      heartbeat: agoWords(worker.last_heartbeat_at, time),
      version: worker.version ?? '–',
      drain: worker.draining ? 'Resume' : 'Drain',
      sleep: worker.state === 'asleep' ? 'Wake' : 'Sleep',
    }),
    finish(row, worker) {
      const meter = partOf(row, 'meter', HTMLMeterElement);
      meter.max = worker.rows;
      meter.value = takenRows(worker);
      meter.ariaLabel = `Rows in use of ${worker.id}`;
      // A worker that is stopping or silent will be gone soon.
      for (const name of ['drain', 'sleep'])
        partOf(row, name, HTMLButtonElement).hidden = worker.stopping || worker.state === 'silent';
    },
    actions: {
      async sleep({ id, state }) {
        await commandWorker(id, state === 'asleep' ? 'wake' : 'sleep');
        return state === 'asleep' ? `${id} loads its model.` : `${id} finishes its requests, then sleeps.`;
      },
      async drain({ model, id, draining }) {
        await drainWorker(model, id, !draining);
        return draining ? `${id} takes requests again.` : `${id} finishes its requests and takes no new ones.`;
      },
    },
  };
}

function takenRows({ rows, free_rows: freeRows }: WorkerView): number {
  return rows - freeRows;
}

function stepWords({ step_ms: stepMs }: WorkerView): string {
  return stepMs === null ? '–' : `${Math.round(stepMs.fast)}–${Math.round(stepMs.slow)} ms`;
}

function stateOf(worker: WorkerView): Toned {
  const [words, tone] = stateWords(worker);
  return worker.changed_files === null ? [words, tone] : [`${words}, files replaced`, tone];
}

function stateWords(worker: WorkerView): Toned {
  const { state } = worker;
  if (state === 'silent') return ['silent', 'bad'];
  if (state === 'loading') return ['loading', 'busy'];
  if (state === 'asleep') return [state, 'held'];
  if (state !== 'draining') return [state, 'good'];
  if (worker.stopping) return ['stopping', 'held'];
  if (!worker.loaded) return ['drained, not loaded', 'held'];
  return [takenRows(worker) > 0 ? 'draining' : 'drained', 'held'];
}

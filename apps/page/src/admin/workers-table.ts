import { findElement, partOf } from '../shell/find-element.ts';
import type { AdminSession } from './admin-session.ts';
import type { WorkerStatus } from './system-status.ts';
import type { TableOptions, Toned } from './table.ts';
import { agoWords } from './time-words.ts';

/** Every worker, and the button that drains it. */
export function workersTable({ drainWorker, askWorker }: AdminSession): TableOptions<WorkerStatus> {
  return {
    name: 'workers',
    itemsOf({ workers }) {
      const count = findElement(document, '#workers-count', HTMLParagraphElement);
      const rows = workers.reduce((sum, worker) => sum + worker.rows, 0);
      const taken = workers.reduce((sum, worker) => sum + takenRows(worker), 0);
      count.textContent = workers.length === 0 ? '' : `${workers.length}, with ${taken} of ${rows} rows taken`;
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
      meter.ariaLabel = `Rows taken of ${worker.id}`;
      // It is about to be gone either way.
      for (const name of ['drain', 'sleep'])
        partOf(row, name, HTMLButtonElement).hidden = worker.stopping || worker.state === 'silent';
    },
    actions: {
      async sleep({ id, state }) {
        await askWorker(id, state === 'asleep' ? 'wake' : 'sleep');
        return state === 'asleep' ? `${id} loads its model.` : `${id} finishes what it has, and sleeps.`;
      },
      async drain({ model, id, draining }) {
        await drainWorker(model, id, !draining);
        return draining ? `${id} takes requests again.` : `${id} finishes what it has and takes nothing new.`;
      },
    },
  };
}

function takenRows({ rows, free_rows: freeRows }: WorkerStatus): number {
  return rows - freeRows;
}

function stepWords({ step_ms: stepMs }: WorkerStatus): string {
  return stepMs === null ? '–' : `${Math.round(stepMs.fast)}–${Math.round(stepMs.slow)} ms`;
}

function stateOf(worker: WorkerStatus): Toned {
  const [words, tone] = stateWords(worker);
  return worker.changed_files === null ? [words, tone] : [`${words}, files replaced`, tone];
}

function stateWords(worker: WorkerStatus): Toned {
  const { state } = worker;
  if (state === 'silent') return ['silent', 'bad'];
  if (state === 'loading') return ['loading', 'busy'];
  if (state === 'asleep') return [state, 'held'];
  if (state !== 'draining') return [state, 'good'];
  if (worker.stopping) return ['stopping', 'held'];
  if (!worker.loaded) return ['drained, not loaded', 'held'];
  return [takenRows(worker) > 0 ? 'draining' : 'drained', 'held'];
}

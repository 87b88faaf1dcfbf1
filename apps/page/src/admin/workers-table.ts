import { findElement } from '../find-element.ts';
import type { ActionRunner } from './action-runner.ts';
import type { AdminSession } from './admin-session.ts';
import { createKeyedRows, partOf, setText } from './keyed-rows.ts';
import { showState, type Tone } from './show-state.ts';
import type { SystemStatus, WorkerStatus } from './system-status.ts';
import { agoWords } from './time-words.ts';

/** A worker, and the time it was asked for. */
type WorkerItem = WorkerStatus & { now: string };

/** Every worker, and the button that drains it. */
export function createWorkersTable(session: AdminSession, run: ActionRunner): (status: SystemStatus) => void {
  const showRows = createKeyedRows<WorkerItem>({
    body: findElement(document, '#workers', HTMLTableSectionElement),
    template: 'worker-row',
    keyOf: ({ model, id }) => `${model} ${id}`,
    prepare: (row, current) =>
      run.onClick(partOf(row, 'drain', HTMLButtonElement), async () => {
        const { model, id, draining } = current();
        await session.drainWorker(model, id, !draining);
        return draining ? `${id} takes requests again.` : `${id} finishes what it has and takes nothing new.`;
      }),
    fill,
  });
  const count = findElement(document, '#workers-count', HTMLParagraphElement);
  const none = findElement(document, '#no-workers', HTMLParagraphElement);
  return ({ workers, time }) => {
    showRows(workers.map((worker) => ({ ...worker, now: time })));
    const rows = workers.reduce((sum, worker) => sum + worker.rows, 0);
    const free = workers.reduce((sum, worker) => sum + worker.free_rows, 0);
    count.textContent = workers.length === 0 ? '' : `${workers.length}, with ${rows - free} of ${rows} rows taken`;
    none.hidden = workers.length > 0;
  };
}

function fill(row: HTMLTableRowElement, worker: WorkerItem): void {
  const { id, rows, free_rows: freeRows, step_ms: stepMs, draining, stopping } = worker;
  setText(row, 'id', id);
  setText(row, 'host', worker.host ?? '');
  setText(row, 'model', worker.model);
  const [tone, words] = stateOf(worker);
  showState(row, tone, words);
  setText(row, 'device', worker.device ?? '–');
  const meter = partOf(row, 'meter', HTMLMeterElement);
  meter.max = rows;
  meter.value = rows - freeRows;
  meter.ariaLabel = `Rows taken of ${id}`;
  setText(row, 'rows', `${rows - freeRows} of ${rows}`);
  setText(row, 'step', stepMs === null ? '–' : `${Math.round(stepMs.fast)}–${Math.round(stepMs.slow)} ms`);
  setText(row, 'heartbeat', agoWords(worker.last_heartbeat_at, worker.now));
  setText(row, 'version', worker.version ?? '–');
  const button = partOf(row, 'drain', HTMLButtonElement);
  setText(row, 'drain', draining ? 'Resume' : 'Drain');
  button.ariaLabel = `${draining ? 'Resume' : 'Drain'} ${id}`;
  // It is about to be gone either way.
  button.hidden = stopping || worker.state === 'silent';
}

function stateOf({ state, stopping, loaded, rows, free_rows: freeRows }: WorkerStatus): [Tone, string] {
  if (state === 'silent') return ['bad', 'silent'];
  if (state === 'loading') return ['busy', 'loading'];
  if (state !== 'draining') return ['good', state];
  if (stopping) return ['held', 'stopping'];
  if (!loaded) return ['held', 'drained, loading'];
  return ['held', freeRows < rows ? 'draining' : 'drained'];
}

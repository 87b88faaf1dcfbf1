import { findElement } from '../find-element.ts';
import type { ActionRunner } from './action-runner.ts';
import type { AdminSession } from './admin-session.ts';
import type { ConfirmDrop } from './drop-dialog.ts';
import { createKeyedRows, partOf, setText } from './keyed-rows.ts';
import type { DeadRequest, SystemStatus } from './system-status.ts';
import { agoWords } from './time-words.ts';

/** A dead request, and the time it was asked for. */
type DeadItem = DeadRequest & { now: string };

export interface FailuresTableOptions {
  session: AdminSession;
  run: ActionRunner;
  confirmDrop: ConfirmDrop;
}

/** What failed and why, and the buttons that retry and drop it. */
export function createFailuresTable({ session, run, confirmDrop }: FailuresTableOptions) {
  const title = findElement(document, '#failures-title', HTMLHeadingElement);
  const showRows = createKeyedRows<DeadItem>({
    body: findElement(document, '#failures', HTMLTableSectionElement),
    template: 'failure-row',
    keyOf: ({ request_id: id }) => id,
    prepare(row, current) {
      run.onClick(partOf(row, 'retry', HTMLButtonElement), async () => {
        const { request_id: id } = current();
        const again = await session.retry(id);
        // The row is about to go, and the focus with it.
        title.focus();
        return `Retried ${id} as ${again}.`;
      });
      run.onClick(partOf(row, 'drop', HTMLButtonElement), async () => {
        const { request_id: id } = current();
        if (!(await confirmDrop(id))) return undefined;
        await session.drop(id);
        title.focus();
        return `Dropped ${id}.`;
      });
    },
    fill,
  });
  const count = findElement(document, '#failures-count', HTMLParagraphElement);
  const none = findElement(document, '#no-failures', HTMLParagraphElement);
  return ({ dead, time }: SystemStatus): void => {
    showRows(dead.map((request) => ({ ...request, now: time })));
    count.textContent = dead.length === 0 ? '' : `${dead.length}, newest first`;
    none.hidden = dead.length > 0;
  };
}

function fill(row: HTMLTableRowElement, dead: DeadItem): void {
  const { request_id: id, is_retryable: isRetryable } = dead;
  setText(row, 'id', id);
  setText(row, 'owner', dead.owner || '–');
  setText(row, 'reason', dead.reason);
  setText(row, 'code', dead.code ?? '');
  setText(row, 'attempts', dead.attempts === null ? '–' : String(dead.attempts));
  setText(row, 'when', agoWords(dead.failed_at, dead.now));
  const retry = partOf(row, 'retry', HTMLButtonElement);
  retry.ariaLabel = `Retry ${id}`;
  retry.hidden = !isRetryable;
  partOf(row, 'drop', HTMLButtonElement).ariaLabel = `Drop ${id}`;
}

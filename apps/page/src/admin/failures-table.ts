import { findElement, partOf } from '../shell/find-element.ts';
import type { AdminSession } from './admin-session.ts';
import { confirmAction } from './confirm-action.ts';
import type { DeadRequestView } from './system-status.ts';
import type { TableOptions } from './table.ts';
import { agoWords } from './time-words.ts';

/** The table of failed requests, with buttons to retry and drop them. */
export function failuresTable(session: AdminSession): TableOptions<DeadRequestView> {
  return {
    name: 'failures',
    itemsOf({ dead }) {
      const count = findElement(document, '#failures-count', HTMLParagraphElement);
      count.textContent = dead.length === 0 ? '' : `${dead.length}, newest first`;
      return dead;
    },
    keyOf: ({ request_id: id }) => id,
    nameOf: ({ request_id: id }) => id,
    wordsOf: (dead, { time }) => ({
      id: dead.request_id,
      owner: dead.owner || '–',
      reason: dead.failure ? `${dead.reason} ${dead.failure.worker}: ${dead.failure.message}` : dead.reason,
      code: dead.code ?? '',
      attempts: String(dead.attempts ?? '–'),
      when: agoWords(dead.failed_at, time),
    }),
    finish(row, { is_retryable: isRetryable }) {
      partOf(row, 'retry', HTMLButtonElement).hidden = !isRetryable;
    },
    actions: {
      async lines({ request_id: id }) {
        const { failure } = await session.readFailure(id);
        showLines(id, failure?.details ?? 'None were recorded.');
        return undefined;
      },
      async retry({ request_id: id }) {
        const again = await session.retry(id);
        leaveRow();
        return `Retried ${id} as ${again}.`;
      },
      async drop({ request_id: id }) {
        const words = `Deletes the events, the outputs and the input of ${id}. Its owner gets 410 (expired) from now on.`;
        if (!(await confirmAction('drop', words))) return undefined;
        await session.drop(id);
        leaveRow();
        return `Dropped ${id}.`;
      },
    },
  };
}

/** Moves the focus out of a row that will be removed. */
function leaveRow(): void {
  findElement(document, '#failures-title', HTMLHeadingElement).focus();
}

/** Shows the log lines of a failed request. */
function showLines(id: string, lines: string): void {
  const dialog = findElement(document, '#lines-dialog', HTMLDialogElement);
  findElement(dialog, '#lines-request', HTMLParagraphElement).textContent = id;
  findElement(dialog, '#lines', HTMLPreElement).textContent = lines;
  dialog.showModal();
}

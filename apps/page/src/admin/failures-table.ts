import { findElement, partOf } from '../shell/find-element.ts';
import type { AdminSession } from './admin-session.ts';
import type { DeadRequest } from './system-status.ts';
import type { TableOptions } from './table.ts';
import { agoWords } from './time-words.ts';

/** What failed and why, and the buttons that retry and drop it. */
export function failuresTable(session: AdminSession): TableOptions<DeadRequest> {
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
      reason: dead.reason,
      code: dead.code ?? '',
      attempts: String(dead.attempts ?? '–'),
      when: agoWords(dead.failed_at, time),
    }),
    finish(row, { is_retryable: isRetryable }) {
      partOf(row, 'retry', HTMLButtonElement).hidden = !isRetryable;
    },
    actions: {
      async retry({ request_id: id }) {
        const again = await session.retry(id);
        leaveRow();
        return `Retried ${id} as ${again}.`;
      },
      async drop({ request_id: id }) {
        if (!(await confirmDrop(id))) return undefined;
        await session.drop(id);
        leaveRow();
        return `Dropped ${id}.`;
      },
    },
  };
}

/** The row is about to go, and the focus with it. */
function leaveRow(): void {
  findElement(document, '#failures-title', HTMLHeadingElement).focus();
}

/** Asks whether a request is to be dropped for good. */
async function confirmDrop(id: string): Promise<boolean> {
  const dialog = findElement(document, '#drop-dialog', HTMLDialogElement);
  findElement(dialog, '#drop-words', HTMLParagraphElement).textContent =
    `What is left of ${id} is removed now: its events, its pictures and what it asked for. Its owner is told that its time is over.`;
  // Escape leaves what the last one chose.
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue === 'drop';
}

import { findElement } from '../find-element.ts';

/** Asks whether a request is to be dropped for good. */
export type ConfirmDrop = (id: string) => Promise<boolean>;

export function createDropDialog(): ConfirmDrop {
  const dialog = findElement(document, '#drop-dialog', HTMLDialogElement);
  const words = findElement(dialog, '#drop-words', HTMLParagraphElement);
  return async (id) => {
    words.textContent = `What is left of ${id} is removed now: its events, its pictures and what it asked for. Its owner is told that its time is over.`;
    // Escape leaves what the last one chose.
    dialog.returnValue = '';
    dialog.showModal();
    await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
    return dialog.returnValue === 'drop';
  };
}

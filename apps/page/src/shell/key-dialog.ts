import { findElement } from './find-element.ts';

/**
 * The place for the key; what is typed goes to `onKey`. The function that comes back shows it, because the server has
 * refused the key, unless it is open.
 */
export function createKeyDialog(onKey: (key: string) => void): () => void {
  const dialog = findElement(document, '#key-dialog', HTMLDialogElement);
  const input = findElement(dialog, '#key', HTMLInputElement);
  const show = (isRefused: boolean): void => {
    if (dialog.open) return;
    findElement(dialog, '#key-reason', HTMLParagraphElement).hidden = !isRefused;
    input.value = '';
    dialog.showModal();
  };
  findElement(dialog, 'form', HTMLFormElement).addEventListener('submit', () => onKey(input.value.trim()));
  findElement(dialog, '[data-close]', HTMLButtonElement).addEventListener('click', () => dialog.close());
  findElement(document, '#open-key', HTMLButtonElement).addEventListener('click', () => show(false));
  return () => show(true);
}

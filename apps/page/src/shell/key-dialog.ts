import { findElement } from './find-element.ts';

/**
 * Creates the dialog for the key; `onKey` gets the entered key. The returned function opens it, unless it is open,
 * because the server refused the key.
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

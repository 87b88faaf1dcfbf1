import { findElement } from './find-element.ts';

/** The place for the API key; what is typed goes to `onKey`. */
export function createKeyDialog(onKey: (key: string) => void) {
  const dialog = findElement(document, '#key-dialog', HTMLDialogElement);
  const form = findElement(dialog, 'form', HTMLFormElement);
  const input = findElement(dialog, '#key', HTMLInputElement);
  const reason = findElement(dialog, '#key-reason', HTMLParagraphElement);
  const show = (isRefused: boolean): void => {
    if (dialog.open) return;
    reason.hidden = !isRefused;
    input.value = '';
    dialog.showModal();
  };
  form.addEventListener('submit', () => onKey(input.value.trim()));
  findElement(dialog, '[data-close]', HTMLButtonElement).addEventListener('click', () => dialog.close());
  findElement(document, '#open-key', HTMLButtonElement).addEventListener('click', () => show(false));
  return {
    /** Shows it, because the server has refused the key, unless it is open. */
    ask: () => show(true),
  };
}

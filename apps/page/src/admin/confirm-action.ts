import { findElement } from '../shell/find-element.ts';

/** Asks for confirmation of an action that cannot be undone, in the dialog of that action. */
export async function confirmAction(action: 'drop' | 'revoke', words: string): Promise<boolean> {
  const dialog = findElement(document, `#${action}-dialog`, HTMLDialogElement);
  findElement(dialog, `#${action}-words`, HTMLParagraphElement).textContent = words;
  // Closing by Escape does not change the return value, so reset it.
  dialog.returnValue = '';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue === action;
}

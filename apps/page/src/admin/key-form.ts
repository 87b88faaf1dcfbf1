import { findElement } from '../shell/find-element.ts';
import type { AdminSession } from './admin-session.ts';
import type { RunAction } from './table.ts';

/** Starts the form that adds an API key and shows the key once. */
export function startKeyForm(session: AdminSession, run: RunAction): void {
  const form = findElement(document, '#key-adder', HTMLFormElement);
  const submit = findElement(form, 'button', HTMLButtonElement);
  const dialog = findElement(document, '#added-dialog', HTMLDialogElement);
  const shown = findElement(dialog, '#added-key', HTMLInputElement);
  dialog.addEventListener('close', () => (shown.value = ''));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void run(submit, async () => {
      const { name, key } = await session.addKey({
        name: findElement(form, '#new-name', HTMLInputElement).value.trim(),
        weight: numberIn(form, '#new-weight'),
        requests_per_minute: numberIn(form, '#new-minute'),
        open_requests: numberIn(form, '#new-open'),
      });
      form.reset();
      shown.value = key;
      dialog.showModal();
      shown.select();
      return `Added a key of ${name}.`;
    });
  });
}

/** Returns null for an empty field: the server's default. */
function numberIn(form: HTMLFormElement, selector: string): number | null {
  const { value, valueAsNumber } = findElement(form, selector, HTMLInputElement);
  return value === '' ? null : valueAsNumber;
}

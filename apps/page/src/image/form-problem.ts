import { findElement } from '../shell/find-element.ts';

/** Maps field names of the API to those of the form. */
const fieldOfParam: Readonly<Record<string, string>> = { size: 'width', mask: 'image' };

export type FormProblem = ReturnType<typeof createFormProblem>;

/** Creates the form's error message. It is shown below the invalid field, or below the button if no field is known. */
export function createFormProblem(form: HTMLFormElement) {
  const message = findElement(form, '[role=alert]', HTMLParagraphElement);
  const home = message.parentElement!;
  const clear = (): void => {
    message.textContent = '';
    for (const field of form.querySelectorAll('[aria-invalid]')) {
      field.removeAttribute('aria-invalid');
      field.removeAttribute('aria-errormessage');
    }
  };
  return {
    clear,
    /** Shows an error, and moves the focus to its field. `param`: the API's name of the field. */
    show(words: string, param?: string): void {
      clear();
      // The API may name a nested field, such as `loras.0.scale`.
      const [name = ''] = param?.split('.') ?? [];
      const field = form.elements.namedItem(fieldOfParam[name] ?? name);
      if (param === undefined || !(field instanceof HTMLElement)) {
        home.append(message);
        message.textContent = words;
        return;
      }
      const more = field.closest('details');
      if (more !== null) more.open = true;
      (field.closest('.row') ?? field.closest('fieldset, .field') ?? home).append(message);
      message.textContent = withLabel(form, words, param);
      field.ariaInvalid = 'true';
      field.setAttribute('aria-errormessage', message.id);
      field.focus();
      message.scrollIntoView({ block: 'nearest' });
    },
  };
}

/** Replaces the API's field name in a message by the form's label. */
function withLabel(form: HTMLFormElement, words: string, param: string): string {
  const label = form.querySelector(`label[for="${param}"], [id="${param}"] > legend`)?.textContent;
  return label != null && words.toLowerCase().startsWith(param) ? `${label}${words.slice(param.length)}` : words;
}

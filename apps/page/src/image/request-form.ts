import { ClientError, type ImageRequest } from '@darkroom/client';
import { drawSeed } from '../requests/draw-seed.ts';
import { errorWords } from '../server/error-words.ts';
import { findElement } from '../shell/find-element.ts';
import { type FormParts, type FormValues, requestOf, valuesOf } from './form-values.ts';
import { setField } from './model-fields.ts';

/** Maps field names of the API to those of the form. */
const fieldOfParam: Readonly<Record<string, string>> = { size: 'width', mask: 'image' };

/** Access to the parts of the form that are not typed. */
export interface PartsOfForm {
  read: () => Promise<FormParts>;
  fill: (request: ImageRequest) => void;
}

/** Creates the form: reads and sends its values, and shows errors at the field concerned. */
export function createRequestForm(
  form: HTMLFormElement,
  parts: PartsOfForm,
  submit: (request: ImageRequest) => Promise<void>,
) {
  const button = findElement(form, 'button[type=submit]', HTMLButtonElement);
  const problem = findElement(form, '[role=alert]', HTMLParagraphElement);
  const send = async (): Promise<void> => {
    // Not `disabled`, which would move the focus off the button.
    if (button.ariaDisabled === 'true') return;
    clearProblem(form, problem);
    const unreadable = unreadableField(form);
    if (unreadable !== undefined) return showProblem(form, problem, `${unreadable} is not a number.`, unreadable);
    button.ariaDisabled = 'true';
    try {
      await submit(requestOf(valuesIn(form), drawSeed, await parts.read()));
    } catch (error) {
      showProblem(form, problem, errorWords(error), error instanceof ClientError ? error.param : undefined);
    } finally {
      button.ariaDisabled = null;
    }
  };
  listenForSend(form, () => void send());
  const fill = (request: ImageRequest): void => {
    clearProblem(form, problem);
    writeValues(form, valuesOf(request));
    parts.fill(request);
  };
  return {
    /**
     * Returns a request for one image of another prompt with a new seed, no input image and otherwise the form's
     * values.
     */
    async requestFor(prompt: string): Promise<ImageRequest> {
      const { loras } = await parts.read();
      return requestOf({ ...valuesIn(form), prompt, negative_prompt: '', seed: '', n: '1' }, drawSeed, { loras });
    },
    /** Fills the form with a request, to repeat it. */
    fill,
    /** Fills the form with the recipe of another image; returns a description of what the form could not take. */
    fillWith(made: Partial<ImageRequest>): string | undefined {
      const { metadata } = valuesIn(form);
      fill({ prompt: '', ...made, n: 1, metadata: metadata === 'on' });
      const { model } = valuesIn(form);
      return made.model === undefined || made.model === model ? undefined : `the model ${made.model}`;
    },
  };
}

function listenForSend(form: HTMLFormElement, send: () => void): void {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    send();
  });
}

function valuesIn(form: HTMLFormElement): FormValues {
  return Object.fromEntries(new FormData(form)) as unknown as FormValues;
}

/** Writes the model first, because its defaults are replaced by the other values. */
function writeValues(form: HTMLFormElement, { model, metadata, ...others }: FormValues): void {
  if (model !== '') {
    setField(form, 'model', model);
    findElement(form, '#model', HTMLSelectElement).dispatchEvent(new Event('change'));
  }
  for (const [name, value] of Object.entries(others)) setField(form, name, value);
  findElement(form, '#metadata', HTMLInputElement).checked = metadata === 'on';
}

/** Returns the name of a number field with invalid text: its value is empty, which would select the model's default. */
function unreadableField(form: HTMLFormElement): string | undefined {
  const inputs = [...form.querySelectorAll<HTMLInputElement>('input[type=number]')];
  return inputs.find(({ validity }) => validity.badInput)?.name;
}

function showProblem(form: HTMLFormElement, problem: HTMLElement, words: string, param: string | undefined): void {
  problem.textContent = words;
  // The API may name a nested field, such as `loras.0.scale`.
  const [name = ''] = param?.split('.') ?? [];
  const field = form.elements.namedItem(fieldOfParam[name] ?? name);
  if (param === undefined || !(field instanceof HTMLElement)) return;
  problem.textContent = withLabel(form, words, param);
  field.ariaInvalid = 'true';
  field.setAttribute('aria-errormessage', problem.id);
  field.focus();
}

function clearProblem(form: HTMLFormElement, problem: HTMLElement): void {
  problem.textContent = '';
  for (const field of form.querySelectorAll('[aria-invalid]')) {
    field.removeAttribute('aria-invalid');
    field.removeAttribute('aria-errormessage');
  }
}

/** Replaces the API's field name in a message by the form's label. */
function withLabel(form: HTMLFormElement, words: string, param: string): string {
  const label = form.querySelector(`label[for="${param}"], [id="${param}"] > legend`)?.textContent;
  return label != null && words.toLowerCase().startsWith(param) ? `${label}${words.slice(param.length)}` : words;
}

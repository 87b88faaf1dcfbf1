import { ClientError, type PictureRequest } from '@darkroom/client';
import { drawSeed } from '../requests/draw-seed.ts';
import { errorWords } from '../server/error-words.ts';
import { findElement } from '../shell/find-element.ts';
import { type FormParts, type FormValues, requestOf, valuesOf } from './form-values.ts';
import { setField } from './model-fields.ts';

/** The fields that a size is made of, and what the API calls it. */
const fieldOfParam: Readonly<Record<string, string>> = { size: 'width', mask: 'image' };

/** What of the form is not typed. */
export interface PartsOfForm {
  read: () => Promise<FormParts>;
  fill: (request: PictureRequest) => void;
}

/** Reads the form, sends it, and shows what was wrong with it where it was wrong. */
export function createRequestForm(
  form: HTMLFormElement,
  parts: PartsOfForm,
  submit: (request: PictureRequest) => Promise<void>,
) {
  const button = findElement(form, 'button[type=submit]', HTMLButtonElement);
  const problem = findElement(form, '[role=alert]', HTMLParagraphElement);
  const send = async (): Promise<void> => {
    // Not `disabled`, which would throw the focus off the button.
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
  const fill = (request: PictureRequest): void => {
    clearProblem(form, problem);
    writeValues(form, valuesOf(request));
    parts.fill(request);
  };
  return {
    /** One picture of another prompt, from nothing, with a seed of its own, and otherwise what the form says. */
    async requestFor(prompt: string): Promise<PictureRequest> {
      const { loras } = await parts.read();
      return requestOf({ ...valuesIn(form), prompt, negative_prompt: '', seed: '', n: '1' }, drawSeed, { loras });
    },
    /** The fields of a request, for the same one again. */
    fill,
    /** One picture of what made another; returns in words what the form does not have of it. */
    fillWith(made: Partial<PictureRequest>): string | undefined {
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

/** The model first, whose defaults the others take the place of. */
function writeValues(form: HTMLFormElement, { model, metadata, ...others }: FormValues): void {
  if (model !== '') {
    setField(form, 'model', model);
    findElement(form, '#model', HTMLSelectElement).dispatchEvent(new Event('change'));
  }
  for (const [name, value] of Object.entries(others)) setField(form, name, value);
  findElement(form, '#metadata', HTMLInputElement).checked = metadata === 'on';
}

/** What stands in it cannot be read as a number: its value is empty then, which would mean the model's own. */
function unreadableField(form: HTMLFormElement): string | undefined {
  const inputs = [...form.querySelectorAll<HTMLInputElement>('input[type=number]')];
  return inputs.find(({ validity }) => validity.badInput)?.name;
}

function showProblem(form: HTMLFormElement, problem: HTMLElement, words: string, param: string | undefined): void {
  problem.textContent = words;
  // Of what is wrong deep within a field the API says where, such as `loras.0.scale`.
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

/** The API calls fields by their names in JSON, the page by what stands beside them. */
function withLabel(form: HTMLFormElement, words: string, param: string): string {
  const label = form.querySelector(`label[for="${param}"], [id="${param}"] > legend`)?.textContent;
  return label != null && words.toLowerCase().startsWith(param) ? `${label}${words.slice(param.length)}` : words;
}

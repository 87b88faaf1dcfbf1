import { ClientError, type ImageRequest } from '@darkroom/client';
import { drawSeed } from '../requests/draw-seed.ts';
import { errorWords } from '../server/error-words.ts';
import { findElement } from '../shell/find-element.ts';
import type { FormProblem } from './form-problem.ts';
import { type FormParts, type FormValues, requestOf, valuesOf } from './form-values.ts';
import { setField } from './model-fields.ts';

/** Access to the parts of the form that are not typed. */
export interface PartsOfForm {
  read: () => Promise<FormParts>;
  fill: (request: ImageRequest) => void;
}

/** Creates the form: reads and sends its values, and shows errors at the field concerned. */
export function createRequestForm(
  { form, parts, problem }: { form: HTMLFormElement; parts: PartsOfForm; problem: FormProblem },
  submit: (request: ImageRequest) => Promise<void>,
) {
  const button = findElement(form, 'button[type=submit]', HTMLButtonElement);
  const send = async (): Promise<void> => {
    // Not `disabled`, which would move the focus off the button.
    if (button.ariaDisabled === 'true') return;
    problem.clear();
    const unreadable = unreadableField(form);
    if (unreadable !== undefined) return problem.show(`${unreadable} is not a number.`, unreadable);
    button.ariaDisabled = 'true';
    try {
      await submit(requestOf(valuesIn(form), drawSeed, await parts.read()));
    } catch (error) {
      problem.show(errorWords(error), error instanceof ClientError ? error.param : undefined);
    } finally {
      button.ariaDisabled = null;
    }
  };
  listenForSend(form, () => void send());
  const fill = (request: ImageRequest): void => {
    problem.clear();
    writeValues(form, valuesOf(request));
    parts.fill(request);
  };
  return {
    /**
     * Returns a request for one image of another prompt with another seed, without styles and an input image, and
     * otherwise with the form's values.
     */
    requestFor: (prompt: string, seed = drawSeed()): ImageRequest =>
      requestOf({ ...valuesIn(form), prompt, negative_prompt: '', seed: String(seed), n: '1' }, drawSeed),
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

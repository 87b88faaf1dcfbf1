import type { ImageModel } from '@darkroom/client';
import { findElement } from '../shell/find-element.ts';

/**
 * Called with the chosen model on every update; `isChosen`: the user has just chosen it, and its defaults are in the
 * form.
 */
export type OnModel = (model: ImageModel, isChosen: boolean) => void;

/**
 * Creates the form's fields whose limits depend on the model. The limits are hints and help with spinning and sliding;
 * the API validates the values.
 */
export function createModelFields(form: HTMLFormElement, onModel: OnModel) {
  const model = findElement(form, '#model', HTMLSelectElement);
  const known = new Map<string, ImageModel>();
  addDials(form);
  model.addEventListener('change', () => {
    const chosen = known.get(model.value);
    if (chosen === undefined) return;
    showLimits(form, chosen);
    fillDefaults(form, chosen);
    onModel(chosen, true);
  });
  return {
    /** Updates the list of models. Choices and typed values are preserved. */
    show(models: readonly ImageModel[]): void {
      const isFirst = known.size === 0;
      known.clear();
      for (const each of models) known.set(each.id, each);
      setOptions(model, [...known.keys()]);
      // As the API does for a request that names no model.
      const served = models.find(({ is_possible: isServed }) => isServed);
      if (isFirst && served !== undefined && known.get(model.value)?.is_possible === false) model.value = served.id;
      const chosen = known.get(model.value);
      if (chosen === undefined) return hint(form, '#model-hint', 'no worker has registered a model yet');
      showLimits(form, chosen);
      // The user may have typed before the list of models arrived.
      if (isFirst) fillDefaults(form, chosen, { keepTyped: true });
      onModel(chosen, false);
    },
    /** Returns a listed model; undefined if it is not listed. */
    modelOf: (id: string | undefined): ImageModel | undefined => known.get(id ?? model.value),
    /** Shows why the models could not be loaded. */
    showProblem: (words: string): void => hint(form, '#model-hint', words),
  };
}

function showLimits(
  form: HTMLFormElement,
  { is_possible, sizes, steps, guidance, schedulers, max_prompt_tokens, upscales }: ImageModel,
) {
  const unserved = is_possible ? '' : 'no worker serves it now; ';
  hint(form, '#model-hint', `${unserved}prompts of up to ${max_prompt_tokens} tokens`);
  hint(form, '#size-hint', `${sizes.min} to ${sizes.max} pixels a side, in steps of ${sizes.multiple}`);
  hint(form, '#steps-hint', `${steps.min} to ${steps.max}`);
  hint(form, '#guidance-hint', `${guidance.min} to ${guidance.max}; 1 = off, twice as fast`);
  for (const name of ['width', 'height']) limit(form, name, { ...sizes, step: sizes.multiple });
  limit(form, 'num_inference_steps', { ...steps, step: 1 });
  limit(form, 'guidance_scale', { ...guidance, step: 0.5 });
  setOptions(findElement(form, '#scheduler', HTMLSelectElement), schedulers);
  showUpscales(findElement(form, '#upscale', HTMLSelectElement), upscales);
}

function fillDefaults(form: HTMLFormElement, { defaults }: ImageModel, { keepTyped = false } = {}): void {
  const { size, num_inference_steps, guidance_scale, scheduler } = defaults;
  const [width = '', height = ''] = size.split('x');
  const values = { width, height, num_inference_steps, guidance_scale, scheduler };
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements.namedItem(name);
    const isTyped = field instanceof HTMLInputElement && field.value !== '';
    if (!(keepTyped && isTyped)) setField(form, name, String(value));
  }
}

/** Sets a field's value as if typed, so that its slider follows. */
export function setField(form: HTMLFormElement, name: string, value: string): void {
  const field = form.elements.namedItem(name) as HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
  // Setting a value that a list does not contain would empty it.
  if (field instanceof HTMLSelectElement && ![...field.options].some((option) => option.value === value)) return;
  field.value = value;
  field.dispatchEvent(new Event('input'));
}

/**
 * Connects each slider to its number field. Sliders are for pointers only: the number field has the label and arrow
 * keys.
 */
function addDials(form: HTMLFormElement): void {
  for (const dial of form.querySelectorAll<HTMLInputElement>('input[data-dial]')) {
    const number = findElement(form, `#${dial.dataset['dial']}`, HTMLInputElement);
    dial.addEventListener('input', () => (number.value = dial.value));
    number.addEventListener('input', () => (dial.value = number.value));
  }
}

function limit(form: HTMLFormElement, name: string, { min, max, step }: Record<'min' | 'max' | 'step', number>): void {
  const number = findElement(form, `#${name}`, HTMLInputElement);
  Object.assign(number, { min, max, step });
  const dial = form.querySelector<HTMLInputElement>(`[data-dial=${name}]`);
  if (dial !== null) Object.assign(dial, { min, max, step, value: number.value });
}

function showUpscales(select: HTMLSelectElement, upscales: readonly number[]): void {
  const current = select.value;
  const larger = upscales.map((times) => new Option(`${times}×`, String(times)));
  select.replaceChildren(new Option('off', ''), ...larger);
  if (upscales.includes(Number(current))) select.value = current;
  select.disabled = upscales.length === 0;
  findElement(select.form!, '#upscale-field', HTMLElement).hidden = select.disabled;
}

function setOptions(select: HTMLSelectElement, values: readonly string[]): void {
  const current = select.value;
  select.replaceChildren(...values.map((value) => new Option(value)));
  if (values.includes(current)) select.value = current;
  select.disabled = values.length === 0;
}

function hint(form: HTMLFormElement, selector: string, words: string): void {
  findElement(form, selector, HTMLParagraphElement).textContent = words;
}

import type { ModelLora, ImageModel, ImageRequest } from '@darkroom/client';
import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';

type Loras = NonNullable<ImageRequest['loras']>;

interface Chip {
  id: string;
  name: string;
  element: HTMLElement;
  box: HTMLInputElement;
  scale: HTMLInputElement;
}

/** Above this number of styles, the list has a search field. */
const maxUnsearched = 8;

/** Creates the list of the chosen model's styles (LoRA adapters), each with a check box and a scale. */
export function createStyleChips(form: HTMLFormElement) {
  const fieldset = findElement(form, '#loras', HTMLFieldSetElement);
  const list = partOf(fieldset, 'chips', HTMLElement);
  const search = partOf(fieldset, 'search', HTMLInputElement);
  const none = partOf(fieldset, 'none', HTMLElement);
  let chips: readonly Chip[] = [];
  /** Shows the styles that match the search; chosen ones stay visible. */
  const filter = (): void => {
    const words = search.value.trim().toLowerCase();
    for (const { name, box, element } of chips) element.hidden = !(box.checked || name.toLowerCase().includes(words));
    none.hidden = chips.length === 0 || chips.some(({ element }) => !element.hidden);
  };
  search.addEventListener('input', filter);
  search.addEventListener('keydown', (event) => {
    // Enter would submit the form.
    if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey) event.preventDefault();
  });
  const choose = (loras: Loras = []): void => {
    for (const { id, box, scale } of chips) {
      const chosen = loras.find((each) => each.id === id);
      box.checked = chosen !== undefined;
      scale.hidden = chosen === undefined;
      scale.value = String(chosen?.scale ?? 1);
    }
    filter();
  };
  const read = (): Loras => chips.filter(({ box }) => box.checked).map(({ id, scale }) => ({ id, ...scaleIn(scale) }));
  return {
    /** Updates the list. Choices and scales are preserved if the model has the style. */
    showModel({ loras = [] }: ImageModel): void {
      fieldset.hidden = fieldset.disabled = loras.length === 0;
      const ids = loras.map(({ id }) => id);
      if (ids.join() === chips.map(({ id }) => id).join()) return;
      const chosen = read();
      chips = loras.map(createChip);
      search.hidden = chips.length <= maxUnsearched;
      search.value = '';
      list.replaceChildren(...chips.map(({ element }) => element));
      choose(chosen);
    },
    /** The chosen styles; undefined if there are none. */
    get chosen(): Loras | undefined {
      const loras = read();
      return loras.length === 0 ? undefined : loras;
    },
    choose,
  };
}

function createChip({ id, name = id }: ModelLora): Chip {
  const element = cloneTemplate('chip', HTMLElement);
  const box = findElement(element, 'input[type=checkbox]', HTMLInputElement);
  const scale = partOf(element, 'scale', HTMLInputElement);
  partOf(element, 'name', HTMLElement).textContent = name;
  scale.name = scale.ariaLabel = `Scale of ${name}`;
  box.addEventListener('change', () => (scale.hidden = !box.checked));
  return { id, name, element, box, scale };
}

/** Reads a scale; if it is empty, the API's default applies. */
function scaleIn({ value }: HTMLInputElement): { scale?: number } {
  return value === '' ? {} : { scale: Number(value) };
}

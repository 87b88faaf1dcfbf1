import type { PictureModel, PictureRequest } from '@darkroom/client';
import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';

type Loras = NonNullable<PictureRequest['loras']>;

interface Chip {
  id: string;
  element: HTMLElement;
  box: HTMLInputElement;
  scale: HTMLInputElement;
}

/** The chosen model's styles (LoRA), each to be taken or left, and how much of each. */
export function createStyleChips(form: HTMLFormElement) {
  const fieldset = findElement(form, '#loras', HTMLFieldSetElement);
  const list = partOf(fieldset, 'chips', HTMLElement);
  let chips: readonly Chip[] = [];
  const choose = (loras: Loras = []): void => {
    for (const { id, box, scale } of chips) {
      const chosen = loras.find((each) => each.id === id);
      box.checked = chosen !== undefined;
      scale.hidden = chosen === undefined;
      scale.value = String(chosen?.scale ?? 1);
    }
  };
  const read = (): Loras => chips.filter(({ box }) => box.checked).map(({ id, scale }) => ({ id, ...scaleIn(scale) }));
  return {
    /** What is chosen and typed stays, where the model has it. */
    showModel({ loras = [] }: PictureModel): void {
      fieldset.hidden = fieldset.disabled = loras.length === 0;
      const ids = loras.map(({ id }) => id);
      if (ids.join() === chips.map(({ id }) => id).join()) return;
      const chosen = read();
      chips = ids.map(createChip);
      list.replaceChildren(...chips.map(({ element }) => element));
      choose(chosen);
    },
    /** Undefined when there are none. */
    get chosen(): Loras | undefined {
      const loras = read();
      return loras.length === 0 ? undefined : loras;
    },
    choose,
  };
}

function createChip(id: string): Chip {
  const element = cloneTemplate('chip', HTMLElement);
  const box = findElement(element, 'input[type=checkbox]', HTMLInputElement);
  const scale = partOf(element, 'scale', HTMLInputElement);
  partOf(element, 'name', HTMLElement).textContent = id;
  scale.name = scale.ariaLabel = `Scale of ${id}`;
  box.addEventListener('change', () => (scale.hidden = !box.checked));
  return { id, element, box, scale };
}

/** An empty one is the API's own. */
function scaleIn({ value }: HTMLInputElement): { scale?: number } {
  return value === '' ? {} : { scale: Number(value) };
}

import type { ImageModel } from '@darkroom/client';
import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';

export type Example = NonNullable<ImageModel['examples']>[number];

/** Creates the list of the chosen model's examples in the empty tray. A click calls `onChoose`. */
export function createExamples(onChoose: (example: Example) => void) {
  const list = findElement(document, '#examples', HTMLUListElement);
  let shown = '';
  return {
    showModel({ id, examples = [] }: ImageModel): void {
      // The models are polled: the button in focus must not be replaced.
      if (shown === id) return;
      shown = id;
      findElement(document, '#examples-offer', HTMLElement).hidden = examples.length === 0;
      list.replaceChildren(
        ...examples.map((example) => {
          const item = cloneTemplate('example', HTMLLIElement);
          partOf(item, 'image', HTMLImageElement).src = example.image;
          partOf(item, 'prompt', HTMLElement).textContent = example.prompt;
          findElement(item, 'button', HTMLButtonElement).addEventListener('click', () => onChoose(example));
          return item;
        }),
      );
    },
  };
}

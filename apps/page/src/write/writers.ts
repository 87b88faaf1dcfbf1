import type { TextModel } from '@darkroom/client';
import { findElement } from '../shell/find-element.ts';
import type { PageStorage } from '../shell/page-storage.ts';

const chosenName = 'darkroom.writer';

const modeWords: Readonly<Record<TextModel['mode'], string>> = {
  autoregressive: 'word by word',
  block_diffusion: 'all words at once',
};

/** Creates the switch between text models. The choice is stored in this browser. */
export function createWriters(storage: PageStorage, onKnown: () => void) {
  const choice = findElement(document, '#writers', HTMLFieldSetElement);
  const hint = findElement(document, '#writer-hint', HTMLParagraphElement);
  const known = new Map<string, TextModel>();
  let imageReader: string | undefined;
  const chosen = (): TextModel | undefined =>
    known.get(storage.getItem(chosenName) ?? '') ??
    [...known.values()].find(({ is_possible }) => is_possible) ??
    known.values().next().value;
  const showHint = (): void => {
    const model = chosen();
    const words = model?.is_possible === false ? 'No worker serves this model right now: requests wait.' : '';
    hint.textContent = model === undefined ? 'No worker has loaded a text model yet.' : words;
  };
  choice.addEventListener('change', ({ target }) => {
    storage.setItem(chosenName, (target as HTMLInputElement).value);
    showHint();
  });
  return {
    get chosen(): string | undefined {
      return chosen()?.id;
    },
    /** The model that describes images, if one is served. */
    get imageReader(): string | undefined {
      return imageReader;
    },
    show(models: readonly TextModel[]): void {
      known.clear();
      imageReader = models.find(({ takes, is_possible }) => is_possible && takes?.includes('image') === true)?.id;
      // Models without a chat template cannot hold a conversation, and some answer questions about images only.
      for (const model of models) if (model.has_chat_template && model.images?.min !== 1) known.set(model.id, model);
      const shown = [...choice.querySelectorAll('input')].map(({ value }) => value);
      const ids = [...known.keys()];
      if (ids.join() !== shown.join())
        choice.querySelector('div')!.replaceChildren(...ids.map((id) => option(known.get(id)!)));
      choice.hidden = ids.length === 0;
      for (const input of choice.querySelectorAll('input')) input.checked = input.value === chosen()?.id;
      showHint();
      onKnown();
    },
    /** Shows why the models could not be loaded. */
    showProblem: (words: string): void => void (hint.textContent = words),
  };
}

function option({ id, mode }: TextModel): HTMLElement {
  const label = document.createElement('label');
  const input = document.createElement('input');
  Object.assign(input, { type: 'radio', name: 'writer', value: id });
  const name = document.createElement('span');
  name.textContent = id;
  const words = document.createElement('small');
  words.textContent = modeWords[mode];
  label.append(input, name, words);
  return label;
}

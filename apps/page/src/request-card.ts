import type { PictureRequest } from '@darkroom/client';
import { cloneTemplate, findElement } from './find-element.ts';
import type { GalleryEntry } from './gallery-storage.ts';
import { createPictureTile } from './picture-tile.ts';
import { isOpen, type RequestState } from './request-state.ts';
import { statusWords } from './status-words.ts';

export interface CardActions {
  cancel: () => void;
  /** Follows it again after a problem. */
  retry: () => void;
  /** The same seed again. */
  again: () => void;
  /** Resolves to true when it is in the clipboard. */
  curl: () => Promise<boolean>;
  remove: () => void;
}

export interface RequestCard {
  element: HTMLElement;
  update(state: RequestState): void;
  dispose(): void;
}

const copiedMs = 2000;

/** A request in the gallery. */
export function createRequestCard({ id, request }: GalleryEntry, actions: CardActions): RequestCard {
  const element = cloneTemplate('card', HTMLLIElement);
  const part = (name: string): HTMLElement => findElement(element, `[data-part=${name}]`, HTMLElement);
  const article = findElement(element, 'article', HTMLElement);
  const tiles = tilesOf(request);
  part('tiles').replaceChildren(...tiles.map((tile) => tile.element));
  part('tiles').dataset['columns'] = String(Math.min(3, Math.ceil(Math.sqrt(tiles.length))));
  const title = part('prompt');
  title.textContent = request.prompt;
  title.id = `prompt-${id}`;
  article.setAttribute('aria-labelledby', title.id);
  part('facts').textContent = factsOf(request);
  const buttons = addActions(article, part, title.id, actions);
  return {
    element,
    update(state) {
      const open = isOpen(state);
      article.dataset['status'] = state.problem === undefined ? state.status : 'problem';
      part('status').textContent = statusWords(state);
      tiles.forEach((tile, index) => tile.update(state.pictures[index]!, open));
      showButton(buttons.cancel, open && !state.isCanceling && state.problem === undefined, article);
      showButton(buttons.retry, state.problem !== undefined, article);
      showButton(buttons.remove, !open || state.problem !== undefined, article);
    },
    dispose: () => tiles.forEach((tile) => tile.dispose()),
  };
}

function tilesOf({ prompt, size, n = 1 }: PictureRequest) {
  return Array.from({ length: n }, (_value, index) =>
    createPictureTile({
      prompt,
      name: n === 1 ? 'the picture' : `picture ${index + 1} of ${n}`,
      shape: size?.replace('x', ' / ') ?? '1',
    }),
  );
}

type ButtonName = 'cancel' | 'retry' | 'again' | 'curl' | 'remove';

function addActions(
  article: HTMLElement,
  part: (name: string) => HTMLElement,
  titleId: string,
  actions: CardActions,
): Record<ButtonName, HTMLElement> {
  const button = (name: ButtonName, act: () => void): HTMLElement => {
    const element = part(name);
    // "Cancel" alone would be the name of every card's button.
    element.setAttribute('aria-describedby', titleId);
    element.addEventListener('click', act);
    return element;
  };
  const buttons = {
    cancel: button('cancel', actions.cancel),
    retry: button('retry', actions.retry),
    again: button('again', actions.again),
    curl: button('curl', () => void copy(part('curl'), actions)),
    remove: button('remove', actions.remove),
  };
  article.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape' && !buttons.cancel.hidden) actions.cancel();
  });
  return buttons;
}

async function copy(button: HTMLElement, actions: CardActions): Promise<void> {
  if (!(await actions.curl())) return;
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy as curl'), copiedMs);
}

/** Focus must not fall off the page with the button that had it. */
function showButton(button: HTMLElement, isShown: boolean, article: HTMLElement): void {
  if (!isShown && button === document.activeElement) article.focus({ preventScroll: true });
  button.hidden = !isShown;
}

function factsOf(request: PictureRequest): string {
  const { model, size, n = 1, num_inference_steps: steps, guidance_scale: guidance, seed, scheduler } = request;
  const facts = [
    model,
    size?.replace('x', ' × '),
    steps === undefined ? undefined : `${steps} steps`,
    guidance === undefined ? undefined : `guidance ${guidance}`,
    scheduler,
    n === 1 ? `seed ${seed}` : `${n} pictures, seeds from ${seed}`,
  ];
  return facts.filter((fact) => fact !== undefined).join(' · ');
}

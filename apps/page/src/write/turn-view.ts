import { createImageTile } from '../image/image-tile.ts';
import { isOpen } from '../requests/request-life.ts';
import type { ImageRequestState } from '../requests/request-state.ts';
import { statusWords } from '../requests/status-words.ts';
import { announce } from '../shell/announce.ts';
import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';
import type { Turn } from './chat.ts';
import { showWords } from './show-words.ts';
import { type TextState, textWords } from './text-state.ts';

export interface TurnActions {
  edit: (turn: Turn, wish: string) => void;
  again: (turn: Turn) => void;
  stop: () => void;
  /** Draws the answer; resolves with an error message, or undefined. */
  develop: (turn: Turn) => Promise<string | undefined>;
  watchImage: (id: string, onChange: (state: ImageRequestState | undefined) => void) => void;
  openImage: (id: string, index: number) => void;
}

export type TurnView = ReturnType<typeof createTurnView>;

/** Creates the view of a turn: a wish and its answer. */
export function createTurnView(first: Turn, actions: TurnActions) {
  const element = cloneTemplate('turn', HTMLLIElement);
  const article = findElement(element, 'article', HTMLElement);
  const part = (name: string): HTMLElement => partOf(element, name, HTMLElement);
  let turn = first;
  part('wish').id = `wish-${turn.key}`;
  article.setAttribute('aria-labelledby', part('wish').id);
  part('wish').textContent = turn.wish;
  part('status').textContent = 'Waiting for the answer before it';
  const editor = addEditor(element, () => turn, actions);
  const image = createTurnImage(part('image'), actions);
  on(article, 'again', () => actions.again(turn));
  on(article, 'stop', actions.stop);
  on(article, 'develop', () => {
    void actions.develop(turn).then((problem) => (part('problem').textContent = problem ?? ''));
  });
  return {
    element,
    editor,
    /** Shows the stored turn. */
    show(next: Turn): void {
      turn = next;
      // An open turn is shown by `grow`.
      if (turn.outcome === undefined) return;
      showEnd(article, turn);
      image.show(turn);
    },
    /** Shows the state of the open turn. */
    grow(state: TextState): void {
      article.dataset['outcome'] = state.status === 'running' ? 'writing' : 'open';
      part('status').textContent = textWords(state);
      showButton(article, 'stop', isOpen(state) && !state.isCanceling);
      showWords(part('answer'), state.text, { isGrowing: isOpen(state) });
    },
    dispose(): void {
      image.dispose();
      element.remove();
    },
  };
}

function showEnd(article: HTMLElement, turn: Turn): void {
  const { outcome = '', answer = '' } = turn;
  const words = endWords(turn);
  // Screen readers read the answer by itself, but not its problems.
  const wasOpen = ['open', 'writing'].includes(article.dataset['outcome'] ?? '');
  if (wasOpen && outcome !== 'succeeded') announce(`${words}: ${turn.wish}`);
  article.dataset['outcome'] = outcome;
  partOf(article, 'status', HTMLElement).textContent = words;
  showWords(partOf(article, 'answer', HTMLElement), answer, { isGrowing: false });
  showButton(article, 'stop', false);
  showButton(article, 'again', true);
  showButton(article, 'develop', answer !== '');
}

/** Creates the editor that replaces the shown wish. */
function addEditor(element: HTMLElement, turnOf: () => Turn, { edit }: TurnActions) {
  const form = partOf(element, 'editor', HTMLFormElement);
  const field = findElement(form, 'textarea', HTMLTextAreaElement);
  const shown = partOf(element, 'wish-line', HTMLElement);
  const button = partOf(element, 'edit', HTMLButtonElement);
  const open = (isOpen: boolean): void => {
    form.hidden = !isOpen;
    shown.hidden = isOpen;
    if (!isOpen) return button.focus();
    field.value = turnOf().wish;
    field.focus();
    field.select();
  };
  const save = (): void => {
    const wish = field.value.trim();
    if (wish !== '') edit(turnOf(), wish);
  };
  button.addEventListener('click', () => open(true));
  partOf(form, 'leave', HTMLButtonElement).addEventListener('click', () => open(false));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    save();
  });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') open(false);
    else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) save();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return { open: () => open(true) };
}

/** Creates the view of an answer's image, which is in the gallery too. */
function createTurnImage(place: HTMLElement, { watchImage, openImage }: TurnActions) {
  let shownId = '';
  let tile: ReturnType<typeof createImageTile> | undefined;
  const remove = (): void => {
    tile?.dispose();
    tile = undefined;
    place.hidden = true;
  };
  return {
    show({ imageId = '', answer = '' }: Turn): void {
      if (imageId === shownId) return;
      shownId = imageId;
      remove();
      if (imageId === '') return;
      tile = createImageTile({ prompt: answer, name: 'the image', shape: '1', onOpen: () => openImage(imageId, 0) });
      const words = document.createElement('p');
      words.className = 'hint';
      place.replaceChildren(tile.element, words);
      watchImage(imageId, (state) => {
        if (state === undefined) return remove();
        place.hidden = false;
        words.textContent = statusWords(state);
        tile?.update(state.images[0]!, isOpen(state));
      });
    },
    dispose: remove,
  };
}

function endWords({ outcome, note = '', model, seed, leftOut = 0 }: Turn): string {
  if (outcome === 'unasked') return 'Not sent: the answer before it did not succeed';
  const without = leftOut === 1 ? 'without the first turn' : `without the first ${leftOut} turns`;
  const facts = [note, model, `seed ${seed}`, ...(leftOut > 0 ? [`${without}: too long for the model`] : [])];
  return facts.join(' · ');
}

function on(article: HTMLElement, name: string, act: () => void): void {
  const button = partOf(article, name, HTMLButtonElement);
  // Adds the wish to the accessible name: every turn has a button "Stop".
  button.setAttribute('aria-describedby', article.getAttribute('aria-labelledby')!);
  button.addEventListener('click', act);
}

/** Hides or shows a button. Moves the focus first, so that it is not lost with the button. */
function showButton(article: HTMLElement, name: string, isShown: boolean): void {
  const button = partOf(article, name, HTMLButtonElement);
  if (!isShown && button === document.activeElement) article.focus({ preventScroll: true });
  button.hidden = !isShown;
}

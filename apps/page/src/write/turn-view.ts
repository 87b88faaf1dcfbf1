import { createPictureTile } from '../picture/picture-tile.ts';
import { isOpen } from '../requests/request-life.ts';
import type { RequestState } from '../requests/request-state.ts';
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
  /** Draws it; what went wrong, in words. */
  develop: (turn: Turn) => Promise<string | undefined>;
  watchPicture: (id: string, onChange: (state: RequestState | undefined) => void) => void;
}

export type TurnView = ReturnType<typeof createTurnView>;

/** A wish and its answer, on the page. */
export function createTurnView(first: Turn, actions: TurnActions) {
  const element = cloneTemplate('turn', HTMLLIElement);
  const article = findElement(element, 'article', HTMLElement);
  const part = (name: string): HTMLElement => partOf(element, name, HTMLElement);
  let turn = first;
  part('wish').id = `wish-${turn.key}`;
  article.setAttribute('aria-labelledby', part('wish').id);
  part('wish').textContent = turn.wish;
  part('status').textContent = 'Waits for the answer before it';
  const editor = addEditor(element, () => turn, actions);
  const picture = createTurnPicture(part('picture'), actions);
  on(article, 'again', () => actions.again(turn));
  on(article, 'stop', actions.stop);
  on(article, 'develop', () => {
    void actions.develop(turn).then((problem) => (part('problem').textContent = problem ?? ''));
  });
  return {
    element,
    editor,
    /** What is stored of it. */
    show(next: Turn): void {
      turn = next;
      // An open one is shown as it grows.
      if (turn.outcome === undefined) return;
      showEnd(article, turn);
      picture.show(turn);
    },
    /** What comes, while it is open. */
    grow(state: TextState): void {
      article.dataset['outcome'] = state.status === 'running' ? 'writing' : 'open';
      part('status').textContent = textWords(state);
      showButton(article, 'stop', isOpen(state) && !state.isCanceling);
      showWords(part('answer'), state.text, { isGrowing: isOpen(state) });
    },
    dispose(): void {
      picture.dispose();
      element.remove();
    },
  };
}

function showEnd(article: HTMLElement, turn: Turn): void {
  const { outcome = '', answer = '' } = turn;
  const words = endWords(turn);
  // An answer is read out by itself; what went wrong with it is not.
  const wasOpen = ['open', 'writing'].includes(article.dataset['outcome'] ?? '');
  if (wasOpen && outcome !== 'succeeded') announce(`${words}: ${turn.wish}`);
  article.dataset['outcome'] = outcome;
  partOf(article, 'status', HTMLElement).textContent = words;
  showWords(partOf(article, 'answer', HTMLElement), answer, { isGrowing: false });
  showButton(article, 'stop', false);
  showButton(article, 'again', true);
  showButton(article, 'develop', answer !== '');
}

/** The wish as a field, in its place. */
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

/** The picture of an answer, which the gallery has too. */
function createTurnPicture(place: HTMLElement, { watchPicture }: TurnActions) {
  let shownId = '';
  let tile: ReturnType<typeof createPictureTile> | undefined;
  const remove = (): void => {
    tile?.dispose();
    tile = undefined;
    place.hidden = true;
  };
  return {
    show({ pictureId = '', answer = '' }: Turn): void {
      if (pictureId === shownId) return;
      shownId = pictureId;
      remove();
      if (pictureId === '') return;
      tile = createPictureTile({ prompt: answer, name: 'the picture', shape: '1' });
      const words = document.createElement('p');
      words.className = 'hint';
      place.replaceChildren(tile.element, words);
      watchPicture(pictureId, (state) => {
        if (state === undefined) return remove();
        place.hidden = false;
        words.textContent = statusWords(state);
        tile?.update(state.pictures[0]!, isOpen(state));
      });
    },
    dispose: remove,
  };
}

function endWords({ outcome, note = '', model, seed, leftOut = 0 }: Turn): string {
  if (outcome === 'unasked') return 'Not asked: the answer before it did not end well';
  const without = leftOut === 1 ? 'without the first turn' : `without the first ${leftOut} turns`;
  const facts = [note, model, `seed ${seed}`, ...(leftOut > 0 ? [`${without}, for which the model has no room`] : [])];
  return facts.join(' · ');
}

function on(article: HTMLElement, name: string, act: () => void): void {
  const button = partOf(article, name, HTMLButtonElement);
  // "Stop" alone would be the name of every turn's button.
  button.setAttribute('aria-describedby', article.getAttribute('aria-labelledby')!);
  button.addEventListener('click', act);
}

/** Focus must not fall off the page with the button that had it. */
function showButton(article: HTMLElement, name: string, isShown: boolean): void {
  const button = partOf(article, name, HTMLButtonElement);
  if (!isShown && button === document.activeElement) article.focus({ preventScroll: true });
  button.hidden = !isShown;
}

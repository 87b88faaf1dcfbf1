import type { PictureRequest } from '@darkroom/client';
import type { GalleryEntry } from '../requests/gallery-storage.ts';
import type { RequestInputs } from '../requests/request-inputs.ts';
import { isOpen } from '../requests/request-life.ts';
import type { RequestState } from '../requests/request-state.ts';
import { statusWords } from '../requests/status-words.ts';
import { TrackedRequest, type TrackRequestOptions } from '../requests/tracked-request.ts';
import type { Session } from '../server/session.ts';
import { announce } from '../shell/announce.ts';
import { copyLine } from '../shell/copy-line.ts';
import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';
import { curlLine } from './curl-line.ts';
import { createPictureTile } from './picture-tile.ts';

export interface RequestCardOptions extends TrackRequestOptions {
  inputs: RequestInputs;
  onAgain: (entry: GalleryEntry) => void;
  onRemove: (id: string) => void;
}

export type RequestCard = ReturnType<typeof createRequestCard>;

const copiedMs = 2000;

export function createRequestCard({ inputs, onAgain, onRemove, onChange, ...options }: RequestCardOptions) {
  const { entry, session } = options;
  const { id, request } = entry;
  const element = cloneTemplate('card', HTMLLIElement);
  const part = (name: string): HTMLElement => partOf(element, name, HTMLElement);
  const article = findElement(element, 'article', HTMLElement);
  const tiles = tilesOf(request);
  part('tiles').replaceChildren(...tiles.map((tile) => tile.element));
  part('tiles').dataset['columns'] = String(Math.min(3, Math.ceil(Math.sqrt(tiles.length))));
  part('prompt').textContent = request.prompt;
  part('prompt').id = `prompt-${id}`;
  article.setAttribute('aria-labelledby', part('prompt').id);
  part('facts').textContent = factsOf(request);
  const showBefore = createBefore(entry, inputs, tiles);
  const show = (state: RequestState): void => {
    showState(article, tiles, state);
    showBefore(state);
  };
  const tracked = new TrackedRequest({
    ...options,
    onChange(state) {
      show(state);
      onChange(state);
    },
  });
  addActions(article, part('prompt').id, {
    cancel: () => void tracked.cancel(),
    retry: () => tracked.resume(),
    again: () => onAgain(entry),
    curl: () => void copyCurlLine(part('curl'), session, request),
    remove: () => onRemove(id),
  });
  show(tracked.state);
  return {
    element,
    tracked,
    dispose(): void {
      tracked.pause();
      element.remove();
      tiles.forEach((tile) => tile.dispose());
    },
  };
}

/** Gets the picture that the request began with once it is known where it is, and shows it beside what became of it. */
function createBefore({ id, request }: GalleryEntry, inputs: RequestInputs, tiles: ReturnType<typeof tilesOf>) {
  let isAsked = request.image === undefined;
  return ({ hasInputs }: RequestState): void => {
    if (isAsked || !(hasInputs || inputs.isKept(id, 'image'))) return;
    isAsked = true;
    inputs.read(id, 'image').then(
      (before) => before !== undefined && tiles.forEach((tile) => tile.showBefore(before)),
      // The way to the server is told of elsewhere; the next news of the request are a reason to ask again.
      () => (isAsked = false),
    );
  };
}

function showState(article: HTMLElement, tiles: ReturnType<typeof tilesOf>, state: RequestState): void {
  const [open, hasProblem] = [isOpen(state), state.problem !== undefined];
  article.dataset['status'] = hasProblem ? 'problem' : state.status;
  partOf(article, 'status', HTMLElement).textContent = statusWords(state);
  tiles.forEach((tile, index) => tile.update(state.pictures[index]!, open));
  showButton(article, 'cancel', open && !state.isCanceling && !hasProblem);
  showButton(article, 'retry', hasProblem);
  showButton(article, 'remove', !open || hasProblem);
}

/** Focus must not fall off the page with the button that had it. */
function showButton(article: HTMLElement, name: string, isShown: boolean): void {
  const button = partOf(article, name, HTMLButtonElement);
  if (!isShown && button === document.activeElement) article.focus({ preventScroll: true });
  button.hidden = !isShown;
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

function addActions(
  article: HTMLElement,
  titleId: string,
  actions: Record<'cancel' | 'retry' | 'again' | 'curl' | 'remove', () => void>,
): void {
  for (const [name, act] of Object.entries(actions)) {
    const button = partOf(article, name, HTMLButtonElement);
    // "Cancel" alone would be the name of every card's button.
    button.setAttribute('aria-describedby', titleId);
    button.addEventListener('click', act);
  }
  article.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape' && !partOf(article, 'cancel', HTMLButtonElement).hidden) actions.cancel();
  });
}

async function copyCurlLine(button: HTMLElement, session: Session, request: PictureRequest): Promise<void> {
  if (!(await copyLine(curlLine(session, request)))) return;
  announce('The curl line is in the clipboard.');
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy as curl'), copiedMs);
}

function factsOf(request: PictureRequest): string {
  const { model, size, n = 1, num_inference_steps: steps, guidance_scale: guidance, seed, scheduler } = request;
  const { image, mask, strength, loras = [], upscale } = request;
  const facts = [
    model,
    size?.replace('x', ' × '),
    steps === undefined ? undefined : `${steps} steps`,
    guidance === undefined ? undefined : `guidance ${guidance}`,
    scheduler,
    image === undefined ? undefined : `from a picture${mask === undefined ? '' : ', in parts'}`,
    image === undefined || strength === undefined ? undefined : `strength ${strength}`,
    ...loras.map(({ id, scale = 1 }) => `${id} × ${scale}`),
    upscale === undefined ? undefined : `${upscale} times as large`,
    n === 1 ? `seed ${seed}` : `${n} pictures, seeds from ${seed}`,
  ];
  return facts.filter((fact) => fact !== undefined).join(' · ');
}

import type { ImageRequest } from '@darkroom/client';
import type { GalleryEntry } from '../requests/gallery-storage.ts';
import type { RequestInputs } from '../requests/request-inputs.ts';
import { isOpen } from '../requests/request-life.ts';
import type { ImageRequestState } from '../requests/request-state.ts';
import { keptWords, statusWords } from '../requests/status-words.ts';
import { TrackedRequest, type TrackRequestOptions } from '../requests/tracked-request.ts';
import type { Session } from '../server/session.ts';
import { announce } from '../shell/announce.ts';
import { copyLine } from '../shell/copy-line.ts';
import { cloneTemplate, findElement, partOf } from '../shell/find-element.ts';
import { type ViewedImage, viewedImages } from '../requests/viewed-image.ts';
import { curlLine } from './curl-line.ts';
import { createDescriptions } from './descriptions.ts';
import { createImageTile } from './image-tile.ts';

export interface RequestCardOptions extends TrackRequestOptions {
  inputs: RequestInputs;
  /** Returns the model that describes images; undefined if none is served. */
  imageReader: () => string | undefined;
  onAgain: (entry: GalleryEntry) => void;
  onOpen: (id: string, index: number) => void;
  onRemove: (id: string) => void;
}

export type RequestCard = ReturnType<typeof createRequestCard>;

const copiedMs = 2000;

export function createRequestCard(options: RequestCardOptions) {
  const { entry, session, inputs, imageReader, onChange } = options;
  const { id, request } = entry;
  const element = cloneTemplate('card', HTMLLIElement);
  const part = (name: string): HTMLElement => partOf(element, name, HTMLElement);
  const article = findElement(element, 'article', HTMLElement);
  const tiles = tilesOf(request, (index) => options.onOpen(id, index));
  showRequest(article, tiles, entry);
  const showBefore = createBefore(entry, inputs, tiles);
  const descriptions = createDescriptions(part('descriptions'), { session, id, count: tiles.length, imageReader });
  const show = (state: ImageRequestState): void => {
    showState(article, tiles, state);
    showButton(article, 'describe', state.status === 'succeeded' && imageReader() !== undefined);
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
    pin: () => void tracked.togglePin(),
    again: () => options.onAgain(entry),
    describe: () => void descriptions.write(),
    curl: () => void copyCurlLine(part('curl'), session, request),
    remove: () => options.onRemove(id),
  });
  show(tracked.state);
  return {
    element,
    tracked,
    images: (): ViewedImage[] => viewedImages(entry, tracked.state),
    /** Shows the actions of the models that are served now. */
    showModels: () => show(tracked.state),
    dispose(): void {
      tracked.pause();
      descriptions.stop();
      element.remove();
      tiles.forEach((tile) => tile.dispose());
    },
  };
}

/** Shows what does not change. */
function showRequest(article: HTMLElement, tiles: ReturnType<typeof tilesOf>, { id, request }: GalleryEntry): void {
  const part = (name: string): HTMLElement => partOf(article, name, HTMLElement);
  part('tiles').replaceChildren(...tiles.map((tile) => tile.element));
  part('tiles').dataset['columns'] = String(Math.min(3, Math.ceil(Math.sqrt(tiles.length))));
  part('prompt').textContent = request.prompt;
  part('prompt').id = `prompt-${id}`;
  article.setAttribute('aria-labelledby', part('prompt').id);
  part('facts').textContent = factsOf(request);
}

/** Returns a function that fetches the input image once it is available, and shows it beside the result. */
function createBefore({ id, request }: GalleryEntry, inputs: RequestInputs, tiles: ReturnType<typeof tilesOf>) {
  let isRequested = request.image === undefined;
  return ({ hasInputs }: ImageRequestState): void => {
    if (isRequested || !(hasInputs || inputs.isKept(id, 'image'))) return;
    isRequested = true;
    inputs.read(id, 'image').then(
      (before) => before !== undefined && tiles.forEach((tile) => tile.showBefore(before)),
      // The banner reports connection problems. The next update of the request starts another try.
      () => (isRequested = false),
    );
  };
}

function showState(article: HTMLElement, tiles: ReturnType<typeof tilesOf>, state: ImageRequestState): void {
  const [open, hasProblem] = [isOpen(state), state.problem !== undefined];
  article.dataset['status'] = hasProblem ? 'problem' : state.status;
  partOf(article, 'status', HTMLElement).textContent = statusWords(state);
  partOf(article, 'kept', HTMLElement).textContent = keptWords(state, Date.now());
  tiles.forEach((tile, index) => tile.update(state.images[index]!, open));
  showButton(article, 'cancel', open && !state.isCanceling && !hasProblem);
  showButton(article, 'retry', hasProblem);
  showButton(article, 'pin', state.status === 'succeeded');
  partOf(article, 'pin', HTMLButtonElement).textContent = state.isPinned === true ? 'Unpin' : 'Pin';
  showButton(article, 'remove', !open || hasProblem);
}

/** Hides or shows a button. Moves the focus first, so that it is not lost with the button. */
function showButton(article: HTMLElement, name: string, isShown: boolean): void {
  const button = partOf(article, name, HTMLButtonElement);
  if (!isShown && button === document.activeElement) article.focus({ preventScroll: true });
  button.hidden = !isShown;
}

function tilesOf({ prompt, size, n = 1 }: ImageRequest, onOpen: (index: number) => void) {
  return Array.from({ length: n }, (_value, index) =>
    createImageTile({
      prompt,
      name: n === 1 ? 'the image' : `image ${index + 1} of ${n}`,
      shape: size?.replace('x', ' / ') ?? '1',
      onOpen: () => onOpen(index),
    }),
  );
}

function addActions(
  article: HTMLElement,
  titleId: string,
  actions: Record<'cancel' | 'retry' | 'pin' | 'again' | 'describe' | 'curl' | 'remove', () => void>,
): void {
  for (const [name, act] of Object.entries(actions)) {
    const button = partOf(article, name, HTMLButtonElement);
    // Adds the prompt to the accessible name: every card has a button "Cancel".
    button.setAttribute('aria-describedby', titleId);
    button.addEventListener('click', act);
  }
  article.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape' && !partOf(article, 'cancel', HTMLButtonElement).hidden) actions.cancel();
  });
}

async function copyCurlLine(button: HTMLElement, session: Session, request: ImageRequest): Promise<void> {
  if (!(await copyLine(curlLine(session, request)))) return;
  announce('The curl line is in the clipboard.');
  button.textContent = 'Copied';
  setTimeout(() => (button.textContent = 'Copy as curl'), copiedMs);
}

function factsOf(request: ImageRequest): string {
  const { model, size, n = 1, num_inference_steps: steps, guidance_scale: guidance, seed, scheduler } = request;
  const { image, mask, strength, loras = [], upscale } = request;
  const facts = [
    model,
    size?.replace('x', ' × '),
    steps === undefined ? undefined : `${steps} steps`,
    guidance === undefined ? undefined : `guidance ${guidance}`,
    scheduler,
    image === undefined ? undefined : `from an image${mask === undefined ? '' : ', masked'}`,
    image === undefined || strength === undefined ? undefined : `strength ${strength}`,
    ...loras.map(({ id, scale = 1 }) => `${id} × ${scale}`),
    upscale === undefined ? undefined : `upscaled ${upscale}×`,
    n === 1 ? `seed ${seed}` : `${n} images, seeds from ${seed}`,
  ];
  return facts.filter((fact) => fact !== undefined).join(' · ');
}

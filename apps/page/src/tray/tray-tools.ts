import type { Gallery } from '../image/gallery.ts';
import { errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { findElement } from '../shell/find-element.ts';
import type { PageStorage } from '../shell/page-storage.ts';
import { findOtherRequests } from './other-requests.ts';

const layoutName = 'darkroom.layout';

/** Starts the tools above the gallery: search, layout, requests from elsewhere. */
export function startTrayTools(gallery: Gallery, session: Session, storage: PageStorage): void {
  const hint = findElement(document, '#tray-hint', HTMLElement);
  const search = findElement(document, '#tray-search', HTMLInputElement);
  search.addEventListener('input', () => gallery.search(search.value));
  startLayout(storage);
  const showOthers = async (): Promise<void> => {
    hint.textContent = 'Loading…';
    try {
      const entries = await findOtherRequests(session, (id) => gallery.has(id));
      const count = gallery.addAll(entries);
      const words = count === 1 ? '1 request was added.' : `${count} requests were added.`;
      const rest = count < entries.length ? ` ${entries.length - count} more do not fit: remove some of yours.` : '';
      hint.textContent = entries.length === 0 ? 'There are no others.' : words + rest;
    } catch (error) {
      hint.textContent = errorWords(error);
    }
  };
  const downloadAll = async (): Promise<void> => {
    const ids = [...new Set(gallery.images.map(({ entry }) => entry.id))];
    if (ids.length === 0) return void (hint.textContent = 'No image is developed yet.');
    hint.textContent = 'Loading…';
    try {
      const url = URL.createObjectURL(await session.client.zip(ids));
      Object.assign(document.createElement('a'), { href: url, download: 'darkroom-images.zip' }).click();
      URL.revokeObjectURL(url);
      hint.textContent = '';
    } catch (error) {
      hint.textContent = errorWords(error);
    }
  };
  findElement(document, '#download-all', HTMLButtonElement).addEventListener('click', () => void downloadAll());
  findElement(document, '#show-elsewhere', HTMLButtonElement).addEventListener('click', () => void showOthers());
}

/** Starts the choice between large cards and a grid, which is stored in this browser. */
function startLayout(storage: PageStorage): void {
  const choice = findElement(document, '#tray-layout', HTMLFieldSetElement);
  const cards = findElement(document, '#cards', HTMLOListElement);
  const show = (layout: string): void => {
    cards.dataset['layout'] = layout;
    for (const input of choice.querySelectorAll('input')) input.checked = input.value === layout;
  };
  choice.addEventListener('change', ({ target }) => {
    const { value } = target as HTMLInputElement;
    storage.setItem(layoutName, value);
    show(value);
  });
  show(storage.getItem(layoutName) === 'grid' ? 'grid' : 'large');
}

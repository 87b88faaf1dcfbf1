import type { PageStorage } from './page-storage.ts';

/** Stores in this browser whether a section is open. */
export function rememberOpen(section: HTMLDetailsElement, storage: PageStorage): void {
  const name = `darkroom.${section.id}`;
  section.open = storage.getItem(name) !== null;
  section.addEventListener('toggle', () => {
    if (section.open) storage.setItem(name, 'open');
    else storage.removeItem(name);
  });
}

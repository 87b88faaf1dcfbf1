import { findElement } from './find-element.ts';
import type { PageStorage } from './page-storage.ts';

const themeName = 'darkroom.theme';

/**
 * Starts the button for light and dark. A choice equal to the system's preference is not stored, so the page keeps
 * following the system.
 */
export function startThemeButton(storage: PageStorage): void {
  const button = findElement(document, '#theme', HTMLButtonElement);
  const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
  const preferred = (): string => (systemIsDark.matches ? 'dark' : 'light');
  const current = (): string => storage.getItem(themeName) ?? preferred();
  const show = (): void => {
    document.documentElement.dataset['theme'] = storage.getItem(themeName) ?? '';
    button.textContent = current() === 'dark' ? 'Lights on' : 'Lights off';
  };
  button.addEventListener('click', () => {
    const next = current() === 'dark' ? 'light' : 'dark';
    if (next === preferred()) storage.removeItem(themeName);
    else storage.setItem(themeName, next);
    show();
  });
  systemIsDark.addEventListener('change', show);
  show();
}

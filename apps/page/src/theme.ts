import type { PageStorage } from './page-storage.ts';

const themeName = 'darkroom.theme';
type Theme = 'dark' | 'light';

/** A button between light and dark. What the system prefers is not stored, so the page goes on following it. */
export function addThemeButton(button: HTMLButtonElement, storage: PageStorage): void {
  const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
  const preferred = (): Theme => (systemIsDark.matches ? 'dark' : 'light');
  const show = (): void => {
    const theme = stored(storage);
    if (theme === undefined) delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = theme;
    button.textContent = (theme ?? preferred()) === 'dark' ? 'Lights on' : 'Lights off';
  };
  button.addEventListener('click', () => {
    const next = (stored(storage) ?? preferred()) === 'dark' ? 'light' : 'dark';
    if (next === preferred()) storage.removeItem(themeName);
    else storage.setItem(themeName, next);
    show();
  });
  systemIsDark.addEventListener('change', show);
  show();
}

function stored(storage: PageStorage): Theme | undefined {
  const theme = storage.getItem(themeName);
  return theme === 'dark' || theme === 'light' ? theme : undefined;
}

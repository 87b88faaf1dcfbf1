const themeName = 'darkroom.theme';
type Theme = 'dark' | 'light';

/** A button between light and dark. What the system prefers is not stored, so the page goes on following it. */
export function addThemeButton(button: HTMLButtonElement): void {
  const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
  const preferred = (): Theme => (systemIsDark.matches ? 'dark' : 'light');
  const show = (): void => {
    const theme = stored();
    if (theme === undefined) delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = theme;
    button.textContent = (theme ?? preferred()) === 'dark' ? 'Lights on' : 'Lights off';
  };
  button.addEventListener('click', () => {
    const next = (stored() ?? preferred()) === 'dark' ? 'light' : 'dark';
    if (next === preferred()) localStorage.removeItem(themeName);
    else localStorage.setItem(themeName, next);
    show();
  });
  systemIsDark.addEventListener('change', show);
  show();
}

function stored(): Theme | undefined {
  const theme = localStorage.getItem(themeName);
  return theme === 'dark' || theme === 'light' ? theme : undefined;
}

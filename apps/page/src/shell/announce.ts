import { findElement } from './find-element.ts';

/** Makes screen readers read a text once, by appending it to the page's log. */
export function announce(words: string): void {
  const line = document.createElement('p');
  line.textContent = words;
  const log = findElement(document, '#announcements', HTMLElement);
  log.append(line);
  if (log.childElementCount > 20) log.firstElementChild?.remove();
}

/** Shows a banner: a connection problem until it is resolved, or an action's error until the next action. */
export function showBanner(banner: 'connection' | 'problem', words: string): void {
  const element = findElement(document, `#${banner}`, HTMLParagraphElement);
  if (element.textContent !== words) element.textContent = words;
  element.hidden = words === '';
}

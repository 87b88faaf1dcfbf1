import { findElement } from './find-element.ts';

/** Has a screen reader say it, once: a new line of the page's log. */
export function announce(words: string): void {
  const line = document.createElement('p');
  line.textContent = words;
  const log = findElement(document, '#announcements', HTMLElement);
  log.append(line);
  if (log.childElementCount > 20) log.firstElementChild?.remove();
}

/** What is wrong with the connection, until it is good again, or with what was to be done, until something else is. */
export function showBanner(banner: 'connection' | 'problem', words: string): void {
  const element = findElement(document, `#${banner}`, HTMLParagraphElement);
  if (element.textContent !== words) element.textContent = words;
  element.hidden = words === '';
}

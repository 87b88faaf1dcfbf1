import { findElement } from './find-element.ts';

/** Has a screen reader say it, once: a new line of the page's log. */
export function announce(words: string): void {
  const line = document.createElement('p');
  line.textContent = words;
  const log = findElement(document, '#announcements', HTMLElement);
  log.append(line);
  if (log.childElementCount > 20) log.firstElementChild?.remove();
}

import { mask } from './text-state.ts';

const masks = new RegExp(`(${mask}+)`);

/**
 * Writes an answer into its live region. While the answer grows, the region is busy and its contents are hidden from
 * screen readers. The finished answer is inserted as a new element, so that it is read once.
 */
export function showWords(region: HTMLElement, text: string, { isGrowing }: { isGrowing: boolean }): void {
  const shown = region.firstElementChild;
  region.ariaBusy = String(isGrowing);
  if (isGrowing && shown?.ariaHidden === 'true') {
    fill(shown, text);
    return;
  }
  if (!isGrowing && shown?.ariaHidden !== 'true' && shown?.textContent === text) return;
  const line = document.createElement('p');
  if (isGrowing) line.ariaHidden = 'true';
  fill(line, text);
  region.replaceChildren(line);
}

/** Writes a text, with unknown tokens in elements of their own. */
function fill(line: Element, text: string): void {
  if (line.childNodes.length <= 1 && !text.includes(mask)) {
    // The usual case, without unknown tokens: one text node, so that a selection is preserved.
    if (line.firstChild instanceof Text) line.firstChild.data = text;
    else line.textContent = text;
    return;
  }
  line.replaceChildren(
    ...text.split(masks).map((run) => {
      if (!run.startsWith(mask)) return run;
      const span = document.createElement('span');
      span.className = 'mask';
      span.textContent = run;
      return span;
    }),
  );
}

import { mask } from './text-state.ts';

const masks = new RegExp(`(${mask}+)`);

/**
 * Writes an answer into its live region. While it grows a screen reader is not told: the region is busy, and what stands in
 * it is hidden from it. The whole answer then comes as something new, and is read once.
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

/** Masks look like what they are: paper on which nothing stands yet. */
function fill(line: Element, text: string): void {
  if (line.childNodes.length <= 1 && !text.includes(mask)) {
    // The usual way, a token at a time: one node, so that what somebody selects stays selected.
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

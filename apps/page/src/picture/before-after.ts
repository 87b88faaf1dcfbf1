import { partOf } from '../shell/find-element.ts';

/** A line over a picture that is drawn to and fro, with what it began with on its left and what became of it on its right. */
export function createWipe(tile: HTMLElement, name: string) {
  const before = partOf(tile, 'before', HTMLImageElement);
  const slider = partOf(tile, 'wipe', HTMLInputElement);
  let url = '';
  let hasAfter = false;
  const show = (): void => {
    tile.style.setProperty('--wipe', `${slider.value}%`);
    slider.ariaValueText = `${slider.value} % of what it began with`;
    before.hidden = slider.hidden = !hasAfter || url === '';
  };
  slider.ariaLabel = `Before and after of ${name}`;
  slider.addEventListener('input', show);
  return {
    showBefore(file: Blob): void {
      URL.revokeObjectURL(url);
      before.src = url = URL.createObjectURL(file);
      show();
    },
    showAfter(): void {
      hasAfter = true;
      show();
    },
    dispose: () => URL.revokeObjectURL(url),
  };
}

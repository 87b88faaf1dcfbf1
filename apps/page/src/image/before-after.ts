import { partOf } from '../shell/find-element.ts';

/** Creates the slider over an image that shows the input image left of a line and the result right of it. */
export function createWipe(tile: HTMLElement, name: string) {
  const before = partOf(tile, 'before', HTMLImageElement);
  const slider = partOf(tile, 'wipe', HTMLInputElement);
  let url = '';
  let hasAfter = false;
  const show = (): void => {
    tile.style.setProperty('--wipe', `${slider.value}%`);
    slider.ariaValueText = `${slider.value} % of the input image`;
    before.hidden = slider.hidden = !hasAfter || url === '';
  };
  slider.ariaLabel = `Before and after of ${name}`;
  slider.addEventListener('input', show);
  return {
    hide(): void {
      URL.revokeObjectURL(url);
      url = '';
      show();
    },
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

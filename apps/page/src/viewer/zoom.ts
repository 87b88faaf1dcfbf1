import { partOf } from '../shell/find-element.ts';

const levels = [1, 2, 4, 8] as const;

/** Creates the zoom of the viewer's image: at level 1 the image fits the stage, above it the stage scrolls. */
export function createZoom(dialog: HTMLElement, stage: HTMLElement) {
  let level = 0;
  const show = (next: number): void => {
    level = Math.min(Math.max(next, 0), levels.length - 1);
    stage.style.setProperty('--zoom', String(levels[level]));
    // Not `disabled`, which would move the focus off the button.
    for (const [name, end] of [['zoom-out', 0] as const, ['zoom-in', levels.length - 1] as const])
      partOf(dialog, name, HTMLButtonElement).ariaDisabled = level === end ? 'true' : null;
    stage.scrollTo((stage.scrollWidth - stage.clientWidth) / 2, (stage.scrollHeight - stage.clientHeight) / 2);
  };
  const zoomIn = (): void => show(level + 1);
  const zoomOut = (): void => show(level - 1);
  partOf(dialog, 'zoom-in', HTMLButtonElement).addEventListener('click', zoomIn);
  partOf(dialog, 'zoom-out', HTMLButtonElement).addEventListener('click', zoomOut);
  partOf(dialog, 'image', HTMLImageElement).addEventListener('click', () => show(level === 0 ? 1 : 0));
  return { zoomIn, zoomOut, reset: (): void => show(0), isZoomed: (): boolean => level > 0 };
}

import type { PictureState } from '../requests/request-state.ts';
import { cloneTemplate, partOf } from '../shell/find-element.ts';
import { createWipe } from './before-after.ts';
import { fileName } from './file-name.ts';

export interface PictureTileOptions {
  prompt: string;
  /** Such as `picture 2 of 4`. */
  name: string;
  /** Width by height. */
  shape: string;
}

/** One picture: blank paper, previews that develop on it, the file. */
export function createPictureTile({ prompt, name, shape }: PictureTileOptions) {
  const element = cloneTemplate('tile', HTMLElement);
  const layers = partOf(element, 'layers', HTMLElement);
  const bar = partOf(element, 'bar', HTMLProgressElement);
  const download = partOf(element, 'download', HTMLAnchorElement);
  bar.ariaLabel = `Steps of ${name}`;
  element.style.aspectRatio = shape;
  const wipe = createWipe(element, name);
  let shown: PictureState | undefined;
  let url = '';
  const showFile = ({ blob, seed }: NonNullable<PictureState['file']>): void => {
    URL.revokeObjectURL(url);
    url = URL.createObjectURL(blob);
    addLayer(layers, { src: url, alt: prompt, kind: 'final' });
    download.href = url;
    download.download = fileName(prompt, seed, blob.type);
    download.ariaLabel = download.title = `Download ${name}, seed ${seed}`;
    download.hidden = false;
    wipe.showAfter();
  };
  return {
    element,
    update(picture: PictureState, isOpen: boolean): void {
      const { step, totalSteps, preview, file } = picture;
      bar.max = Math.max(1, totalSteps);
      bar.value = step;
      bar.hidden = !isOpen || file !== undefined || totalSteps === 0;
      element.classList.toggle('waiting', isOpen && preview === undefined && file === undefined);
      element.style.setProperty('--left', String(totalSteps === 0 ? 1 : 1 - step / totalSteps));
      if (file !== undefined && file !== shown?.file) showFile(file);
      else if (file === undefined && preview !== undefined && preview !== shown?.preview)
        addLayer(layers, { src: preview, alt: `${prompt} (developing)`, kind: 'preview' });
      shown = picture;
    },
    /** What it began with, to be compared with what became of it. */
    showBefore: (file: Blob): void => wipe.showBefore(file),
    /** Gives back what the browser holds for it. */
    dispose(): void {
      URL.revokeObjectURL(url);
      wipe.dispose();
    },
  };
}

/** Above the newest one, which stays until the next comes: the new one fades in over it. */
function addLayer(layers: HTMLElement, { src, alt, kind }: { src: string; alt: string; kind: string }): void {
  const below = layers.lastElementChild;
  // Removed one by one: to put the one below in again would make it fade in again.
  for (const layer of layers.querySelectorAll(':not(:last-child)')) layer.remove();
  if (below !== null) below.ariaHidden = 'true';
  const image = new Image();
  image.className = kind;
  image.alt = alt;
  image.src = src;
  layers.append(image);
}

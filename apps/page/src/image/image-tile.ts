import type { ImageState } from '../requests/request-state.ts';
import { cloneTemplate, partOf } from '../shell/find-element.ts';
import { createWipe } from './before-after.ts';
import { fileName } from './file-name.ts';

export interface ImageTileOptions {
  prompt: string;
  /** Such as `image 2 of 4`. */
  name: string;
  /** Width / height, for CSS. */
  shape: string;
  /** Opens the finished image. */
  onOpen: () => void;
}

/** Creates the tile of one image: blank, then previews, then the file. */
export function createImageTile({ prompt, name, shape, onOpen }: ImageTileOptions) {
  const element = cloneTemplate('tile', HTMLElement);
  const layers = partOf(element, 'layers', HTMLElement);
  const bar = partOf(element, 'bar', HTMLProgressElement);
  const download = partOf(element, 'download', HTMLAnchorElement);
  const open = partOf(element, 'open', HTMLButtonElement);
  open.ariaLabel = open.title = `Open ${name}`;
  open.addEventListener('click', onOpen);
  bar.ariaLabel = `Steps of ${name}`;
  element.style.aspectRatio = shape;
  const wipe = createWipe(element, name);
  let shown: ImageState | undefined;
  let url = '';
  const showFile = ({ blob, seed }: NonNullable<ImageState['file']>): void => {
    URL.revokeObjectURL(url);
    url = URL.createObjectURL(blob);
    addLayer(layers, { src: url, alt: prompt, kind: 'final' });
    download.href = url;
    download.download = fileName(prompt, seed, blob.type);
    download.ariaLabel = download.title = `Download ${name}, seed ${seed}`;
    download.hidden = open.hidden = false;
    wipe.showAfter();
  };
  return {
    element,
    update(image: ImageState, isOpen: boolean): void {
      const { step, totalSteps, preview, file } = image;
      bar.max = Math.max(1, totalSteps);
      bar.value = step;
      bar.hidden = !isOpen || file !== undefined || totalSteps === 0;
      element.classList.toggle('waiting', isOpen && preview === undefined && file === undefined);
      element.style.setProperty('--left', String(totalSteps === 0 ? 1 : 1 - step / totalSteps));
      if (file !== undefined && file !== shown?.file) showFile(file);
      else if (file === undefined && preview !== undefined && preview !== shown?.preview)
        addLayer(layers, { src: preview, alt: `${prompt} (developing)`, kind: 'preview' });
      shown = image;
    },
    /** Shows the input image for comparison with the result. */
    showBefore: (file: Blob): void => wipe.showBefore(file),
    /** Releases the object URLs. */
    dispose(): void {
      URL.revokeObjectURL(url);
      wipe.dispose();
    },
  };
}

/** Adds a layer above the newest one, which remains until the next is added: the new one fades in over it. */
function addLayer(layers: HTMLElement, { src, alt, kind }: { src: string; alt: string; kind: string }): void {
  const below = layers.lastElementChild;
  // Remove the others one by one: inserting the one below again would restart its animation.
  for (const layer of layers.querySelectorAll(':not(:last-child)')) layer.remove();
  if (below !== null) below.ariaHidden = 'true';
  const image = new Image();
  image.className = kind;
  image.alt = alt;
  image.src = src;
  layers.append(image);
}

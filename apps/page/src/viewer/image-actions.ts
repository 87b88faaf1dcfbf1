import type { ImageModel, ImageRequest } from '@darkroom/client';
import { fileName } from '../image/file-name.ts';
import { drawSeed } from '../requests/draw-seed.ts';
import type { GalleryEntry } from '../requests/gallery-storage.ts';
import { settingsOf, upscaleOf, variationsOf, type ViewedImage } from '../requests/viewed-image.ts';

export interface ImageActionsOptions {
  submit: (request: ImageRequest) => Promise<string>;
  /** Returns a model by id; undefined if it is not served. */
  modelOf: (id: string | undefined) => ImageModel | undefined;
  /** Fills the form with a request. */
  fill: (entry: GalleryEntry) => void;
  /** Sets the form's input image, and the prompt if it is empty. */
  startFrom: (file: File, prompt: string) => Promise<void>;
  /** Moves the focus to the form's prompt. */
  showForm: () => void;
  /** Moves the focus to a request in the gallery. */
  showRequest: (id: string) => void;
}

/** Creates the actions that use a finished image. Each resolves with a function that moves the focus. */
export function createImageActions({ submit, modelOf, fill, startFrom, showForm, showRequest }: ImageActionsOptions) {
  const send = async (request: ImageRequest): Promise<() => void> => {
    const id = await submit(request);
    return () => showRequest(id);
  };
  return {
    async start({ entry, file }: ViewedImage): Promise<() => void> {
      const { prompt } = entry.request;
      const name = fileName(prompt, file.seed, file.blob.type);
      await startFrom(new File([file.blob], name, { type: file.blob.type }), prompt);
      return showForm;
    },
    vary: (image: ViewedImage) => send(variationsOf(image, modelOf(image.entry.request.model), drawSeed())),
    upscale(image: ViewedImage): Promise<() => void> {
      const upscale = upscaleOf(image, modelOf(image.entry.request.model));
      return send({ ...settingsOf(image), ...(upscale !== undefined && { upscale }) });
    },
    async use(image: ViewedImage): Promise<() => void> {
      fill({ ...image.entry, request: settingsOf(image) });
      return showForm;
    },
  };
}

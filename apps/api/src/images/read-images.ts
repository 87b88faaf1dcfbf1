/** Loads the images that a body refers to, validates them and resizes them to the output size. */
import { describeValue, type FieldProblem } from '@darkroom/core';
import type { FittedImage, ImagePart } from '@darkroom/imaging';
import type { ImageAttachment, ImageResult, ImageSize, ImagesResult, ReadImages } from '@darkroom/kinds';
import { fileIdInUrl, readOwnFile } from '../files/read-own-file.ts';
import { fetchImageUrl } from './fetch-image.ts';
import { type ImageSources, readStoredImage } from './read-stored-image.ts';
import type { Uploads } from '../body/uploads.ts';
import type { Waiter } from '../body/take-turn.ts';
import type { FileShare, FileWaiter } from '../body/file-memory.ts';

export interface ReadImagesOptions {
  /** The client, which owns the images. */
  waiter: Waiter;
  uploads: Uploads | undefined;
  /** Marks the area to paint: white pixels; or, as in OpenAI's API, transparent pixels of the mask, or of the image. */
  maskBy: 'brightness' | 'transparency';
  /** The request holds another image in memory. */
  holdsOtherFile?: boolean;
}

/** A file in memory. */
interface LoadedFile {
  bytes: Uint8Array;
  /** Frees the memory. */
  release: () => void;
}

const expectedImage = 'expected a PNG, JPEG or WebP image';

/** Invalid image, thrown at any depth; `readInputImages` converts it into a result. */
class InvalidImage extends Error {
  readonly problem: FieldProblem;

  constructor(field: string, what: string) {
    const message = `${field} is ${what}`;
    super(message);
    this.problem = { field, code: 'invalid_value', message };
  }
}

/**
 * Reads image and mask. Holds no memory when it returns, and releases the file of one before it loads the other, so
 * that no request waits while it holds memory.
 */
export async function readInputImages(
  context: ImageSources,
  options: ReadImagesOptions,
  { sources, sizeOf }: { sources: Parameters<ReadImages>[0]; sizeOf: Parameters<ReadImages>[1] },
): Promise<ImagesResult> {
  const { image, mask: maskSource } = sources;
  const parts: ImagePart[] = maskSource === undefined ? ['image', 'transparency'] : ['image'];
  try {
    const { own, size, fitted } = await useImage(context, options, { field: 'image', source: image, sizeOf, parts });
    const mask =
      maskSource === undefined
        ? maskOfImage(fitted.transparency, options.maskBy)
        : await readMask(context, options, { source: maskSource, own, size });
    const attachments = new Map<ImageAttachment, Uint8Array>([['image', fitted.image!]]);
    if (mask !== undefined) attachments.set('mask', mask);
    return { status: 'read', size, attachments };
  } catch (error) {
    if (error instanceof InvalidImage) return { status: 'invalid', problems: [error.problem] };
    throw error;
  }
}

/**
 * Reads one of the images of a conversation. Its bytes count as memory of the owner until `held` is freed. Waits for
 * memory for the first file of a request only, and never for a decoded image, which is in memory by then. Throws 503 if
 * there is none.
 */
export async function readConversationImage(
  context: ImageSources,
  options: ReadImagesOptions & { held: FileShare[] },
  { field, source, sizeOf }: { field: string; source: string; sizeOf: (own: ImageSize) => ImageSize },
): Promise<ImageResult> {
  const { held } = options;
  try {
    const use = { field, source, sizeOf, parts: ['image'] as const };
    const { size, fitted } = await useImage(context, { ...options, holdsOtherFile: held.length > 0 }, use);
    const data = fitted.image!;
    const memory = context.images.files.open(data.byteLength, { ...waiterFor(options), holdsOtherFile: true });
    held.push(memory);
    await memory.grow(data.byteLength);
    memory.complete(data.byteLength);
    return { status: 'read', size, data };
  } catch (error) {
    if (error instanceof InvalidImage) return { status: 'invalid', problems: [error.problem] };
    throw error;
  }
}

interface ImageUse {
  field: string;
  source: string;
  /** Returns the target size for an image of this size. */
  sizeOf: (own: ImageSize) => ImageSize;
  parts: readonly ImagePart[];
}

/** Loads an image, decodes and resizes it in the owner's turn, and releases its file. */
async function useImage(
  context: ImageSources,
  options: ReadImagesOptions,
  { field, source, sizeOf, parts }: ImageUse,
): Promise<{ own: ImageSize; size: ImageSize; fitted: FittedImage }> {
  const { images } = context;
  const file = await load(context, options, { field, source });
  try {
    const endTurn = await images.takeDecodingTurn(options.waiter);
    try {
      const choose = (own: ImageSize) => ({ size: sizeOf(own), parts });
      const result = await images.reader.read(file.bytes, choose);
      if (result.status === 'refused') throw new InvalidImage(field, `${result.received}, expected ${result.expected}`);
      return { own: result.own, size: result.fit.size, fitted: result.fitted };
    } finally {
      endTurn();
    }
  } finally {
    file.release();
  }
}

async function readMask(
  context: ImageSources,
  options: ReadImagesOptions,
  { source, own, size }: { source: string; own: ImageSize; size: ImageSize },
): Promise<Uint8Array> {
  const part = options.maskBy === 'brightness' ? 'grey' : 'transparency';
  const { fitted } = await useImage(context, options, {
    field: 'mask',
    source,
    sizeOf: (maskSize) => (checkSize(maskSize, own), size),
    parts: [part],
  });
  const mask = fitted[part];
  if (mask === undefined)
    throw new InvalidImage('mask', 'fully opaque, expected an image that is transparent where to paint');
  return mask;
}

function checkSize(mask: ImageSize, image: ImageSize): void {
  if (mask.width !== image.width || mask.height !== image.height)
    throw new InvalidImage('mask', `${sizeText(mask)}, expected ${sizeText(image)}, which is the size of image`);
}

function sizeText({ width, height }: ImageSize): string {
  return `${width}x${height}`;
}

async function load(
  context: ImageSources,
  options: ReadImagesOptions,
  { field, source }: { field: string; source: string },
): Promise<LoadedFile> {
  const { uploads } = options;
  const shown = describeValue(source);
  const waiter = waiterFor(options);
  // Uploads are released together, by the submission.
  if (/^cid:/i.test(source)) {
    const bytes = uploads?.get(source.slice('cid:'.length));
    if (bytes === undefined) throw new InvalidImage(field, `${shown}, which was not uploaded, ${expectedImage}`);
    return { bytes, release: () => {} };
  }
  if (/^data:/i.test(source)) {
    // `Buffer.from` skips characters outside base64, such as line breaks; the decoder validates the rest.
    const bytes = Buffer.from(source.slice(source.indexOf(',') + 1), 'base64');
    return { bytes, release: () => {} };
  }
  const { publicUrl } = context.config;
  const isOurs = publicUrl !== undefined && source.startsWith(`${publicUrl}/`);
  if (source.startsWith('/') || isOurs) {
    const path = isOurs ? source.slice(publicUrl.length) : source;
    const stored = await readStoredImage(context, path, waiter);
    if (stored.status === 'missing')
      throw new InvalidImage(field, `${shown}, which was not found, expected one of your images`);
    if (stored.status === 'refused') throw new InvalidImage(field, `${stored.came}, expected ${stored.expected}`);
    return { bytes: stored.bytes, release: stored.release };
  }
  const fileId = fileIdInUrl(source);
  if (fileId !== undefined) return loadOwnFile(context, { field, fileId, shown, waiter });
  const result = await fetchImageUrl(source, { intake: context.images, waiter });
  if (result.status === 'failed')
    throw new InvalidImage(field, `${shown}, ${result.why}, ${expectedImage} on a public server`);
  return { bytes: result.bytes, release: result.release };
}

function waiterFor({ waiter: { owner, signal }, uploads, holdsOtherFile = false }: ReadImagesOptions): FileWaiter {
  return { owner, signal, holdsOtherFile: holdsOtherFile || (uploads !== undefined && uploads.byteLength > 0) };
}

/** Loads an uploaded file of the client from the store. */
async function loadOwnFile(
  context: ImageSources,
  { field, fileId, shown, waiter }: { field: string; fileId: string; shown: string; waiter: FileWaiter },
): Promise<LoadedFile> {
  let memory: FileShare | undefined;
  try {
    const found = await readOwnFile(context, { owner: waiter.owner, id: fileId }, async ({ size }) => {
      memory = context.images.files.open(size, waiter);
      await memory.grow(size);
      memory.complete(size);
    });
    if (found === undefined) throw new InvalidImage(field, `${shown}, which was not found, expected one of your files`);
    return { bytes: found.data, release: () => memory?.free() };
  } catch (error) {
    memory?.free();
    throw error;
  }
}

/** Returns the mask of an image without a separate one: its transparency. Throws if `by` is brightness. */
function maskOfImage(clear: Uint8Array | undefined, by: ReadImagesOptions['maskBy']): Uint8Array | undefined {
  if (clear === undefined || by === 'transparency') return clear;
  throw new InvalidImage('image', 'partly transparent, expected an opaque image, or a separate mask');
}

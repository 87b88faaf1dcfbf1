/** What becomes of the pictures that a body names: got from where they are, looked at, and brought to the size of what is drawn. */
import { describeValue, type FieldProblem } from '@darkroom/core';
import { fitPicture, type FittedPicture, readPicture, type SourcePicture } from '@darkroom/imaging';
import type { PictureAttachment, PictureSize, PicturesResult, ReadPictures } from '@darkroom/kinds';
import type { ApiContext } from '../context.ts';
import { fetchPicture } from './fetch-picture.ts';
import { readStoredPicture } from './read-stored-picture.ts';
import type { Uploads } from './uploads.ts';
import type { Waiter } from './waiting-line.ts';

export interface PictureReaderOptions {
  /** The client, who is the owner. */
  waiter: Waiter;
  uploads: Uploads | undefined;
  /** Where a mask says what to paint: where it is white; or, as OpenAI has it, where it is transparent, or without one the picture. */
  maskBy: 'brightness' | 'transparency';
}

/** A file in memory. */
interface LoadedFile {
  bytes: Uint8Array;
  /** Nobody needs it any more. */
  release: () => void;
}

const expectedPicture = 'expected a PNG, JPEG or WebP picture';

/** Wrong pictures are told by this, out of any depth; it is a result in the end. */
class WrongPicture extends Error {
  readonly problem: FieldProblem;

  constructor(field: PictureAttachment, what: string) {
    const message = `${field} is ${what}`;
    super(message);
    this.problem = { field, code: 'invalid_value', message };
  }
}

/**
 * Nothing of the pictures is kept here when it is done, whatever came of it. They come one after the other: the file of one is let
 * go of before the next one is asked for, so that nobody stands in line with what others wait for.
 */
export function createPictureReader(context: ApiContext, options: PictureReaderOptions): ReadPictures {
  const { maskBy } = options;
  return async (sources, sizeOf) => {
    const read = async (): Promise<PicturesResult> => {
      const { own, size, image, clear } = await usePicture(context, options, {
        field: 'image',
        source: sources.image,
        sizeOf,
        use: async (fitted, sizes) => ({
          ...sizes,
          image: fitted.image,
          clear: sources.mask === undefined ? await fitted.transparency() : undefined,
        }),
      });
      const mask =
        sources.mask === undefined
          ? maskOfPicture(clear, maskBy)
          : await usePicture(context, options, {
              field: 'mask',
              source: sources.mask,
              sizeOf: (its) => (checkSize(its, own), size),
              use: (fitted) => maskOf(fitted, maskBy),
            });
      const attachments = new Map<PictureAttachment, Uint8Array>([['image', image]]);
      if (mask !== undefined) attachments.set('mask', mask);
      return { status: 'read', size, attachments };
    };
    try {
      return await read();
    } catch (error) {
      if (error instanceof WrongPicture) return { status: 'invalid', problems: [error.problem] };
      throw error;
    }
  };
}

interface PictureUse<Result> {
  field: PictureAttachment;
  source: string;
  /** The size that it is wanted in. */
  sizeOf: (own: PictureSize) => PictureSize;
  use: (fitted: FittedPicture, sizes: { own: PictureSize; size: PictureSize }) => Promise<Result>;
}

/** Gets a picture, brings it to a size, and lets go of its file. */
async function usePicture<Result>(
  context: ApiContext,
  options: PictureReaderOptions,
  { field, source, sizeOf, use }: PictureUse<Result>,
): Promise<Result> {
  const { pictures } = context;
  const file = await load(context, options, { field, source });
  try {
    const picture = await readPicture(file.bytes, pictures);
    if (picture.status === 'refused') throw new WrongPicture(field, `${picture.came}, expected ${picture.expected}`);
    const own = { width: picture.width, height: picture.height };
    const size = sizeOf(own);
    const leave = await pictures.decoding.take(1, options.waiter);
    try {
      return await use(await fit(field, picture, size), { own, size });
    } finally {
      leave();
    }
  } finally {
    file.release();
  }
}

function checkSize(mask: PictureSize, image: PictureSize): void {
  if (mask.width !== image.width || mask.height !== image.height)
    throw new WrongPicture('mask', `${sizeText(mask)}, expected ${sizeText(image)}, which is the size of image`);
}

function sizeText({ width, height }: PictureSize): string {
  return `${width}x${height}`;
}

async function load(
  context: ApiContext,
  { waiter: client, uploads }: PictureReaderOptions,
  { field, source }: { field: PictureAttachment; source: string },
): Promise<LoadedFile> {
  const shown = describeValue(source);
  const { owner, signal } = client;
  const waiter = { owner, signal, isHolding: uploads !== undefined && uploads.byteLength > 0 };
  // Uploads are let go of all together.
  if (/^cid:/i.test(source)) {
    const bytes = uploads?.get(source.slice('cid:'.length));
    if (bytes === undefined) throw new WrongPicture(field, `${shown}, which did not come along, ${expectedPicture}`);
    return { bytes, release: () => {} };
  }
  if (/^data:/i.test(source)) {
    // What is no base64 in it is left out, as of line breaks; the rest is a picture or is none.
    const bytes = Buffer.from(source.slice(source.indexOf(',') + 1), 'base64');
    return { bytes, release: () => {} };
  }
  if (source.startsWith('/')) {
    const stored = await readStoredPicture(context, source, waiter);
    if (stored.status === 'missing')
      throw new WrongPicture(field, `${shown}, which is not there, expected a picture of yours`);
    if (stored.status === 'refused') throw new WrongPicture(field, `${stored.came}, expected ${stored.expected}`);
    return { bytes: stored.bytes, release: stored.letGo };
  }
  const result = await fetchPicture(source, { door: context.pictures, waiter });
  if (result.status === 'failed')
    throw new WrongPicture(field, `${shown}, ${result.why}, ${expectedPicture} on a public server`);
  return { bytes: result.bytes, release: result.letGo };
}

/** Where a picture without a mask is transparent. */
function maskOfPicture(clear: Uint8Array | undefined, by: PictureReaderOptions['maskBy']): Uint8Array | undefined {
  if (clear === undefined || by === 'transparency') return clear;
  throw new WrongPicture('image', 'transparent in parts, expected an opaque picture, or a mask beside it');
}

async function maskOf(mask: FittedPicture, by: PictureReaderOptions['maskBy']): Promise<Uint8Array> {
  if (by === 'brightness') return mask.grey();
  const made = await mask.transparency();
  if (made === undefined)
    throw new WrongPicture('mask', 'opaque everywhere, expected a picture that is transparent where to paint anew');
  return made;
}

async function fit(field: PictureAttachment, source: SourcePicture, size: PictureSize): Promise<FittedPicture> {
  const fitted = await fitPicture(source, size);
  if (fitted.status === 'refused') throw new WrongPicture(field, `${fitted.came}, expected ${fitted.expected}`);
  return fitted;
}

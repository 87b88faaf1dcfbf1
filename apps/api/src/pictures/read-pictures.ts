/** What becomes of the pictures that a body names: got from where they are, looked at, and brought to the size of what is drawn. */
import { describeValue, type FieldProblem } from '@darkroom/core';
import { fitPicture, type FittedPicture, readPicture, type SourcePicture } from '@darkroom/imaging';
import type { PictureAttachment, PictureSize, PicturesResult, ReadPictures } from '@darkroom/kinds';
import type { ApiContext } from '../context.ts';
import { fetchPicture } from './fetch-picture.ts';
import { readStoredPicture } from './read-stored-picture.ts';
import type { Uploads } from './uploads.ts';

export interface PictureReaderOptions {
  owner: string;
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

/** Nothing of the pictures is kept here when it is done, whatever came of it. */
export function createPictureReader(context: ApiContext, options: PictureReaderOptions): ReadPictures {
  return async (sources, sizeOf) => {
    const loaded: LoadedFile[] = [];
    const open = async (field: PictureAttachment): Promise<SourcePicture | undefined> => {
      const source = sources[field];
      if (source === undefined) return undefined;
      const file = await load(context, options, { field, source });
      loaded.push(file);
      const picture = await readPicture(file.bytes, context.pictures);
      if (picture.status === 'refused') throw new WrongPicture(field, `${picture.came}, expected ${picture.expected}`);
      return picture;
    };
    try {
      const image = (await open('image'))!;
      const mask = await open('mask');
      if (mask !== undefined && (mask.width !== image.width || mask.height !== image.height))
        throw new WrongPicture('mask', `${sizeText(mask)}, expected ${sizeText(image)}, which is the size of image`);
      const size = sizeOf({ width: image.width, height: image.height });
      return { status: 'read', size, attachments: await makeAttachments(context, options, { image, mask, size }) };
    } catch (error) {
      if (error instanceof WrongPicture)
        return { status: 'invalid', problems: [error.problem] } satisfies PicturesResult;
      throw error;
    } finally {
      for (const { release } of loaded) release();
    }
  };
}

function sizeText({ width, height }: PictureSize): string {
  return `${width}x${height}`;
}

async function load(
  context: ApiContext,
  { owner, uploads }: PictureReaderOptions,
  { field, source }: { field: PictureAttachment; source: string },
): Promise<LoadedFile> {
  const shown = describeValue(source);
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
    const bytes = await readStoredPicture(context, source, owner);
    if (bytes === undefined) throw new WrongPicture(field, `${shown}, which is not there, expected a picture of yours`);
    return { bytes, release: () => {} };
  }
  const result = await fetchPicture(source, { door: context.pictures });
  if (result.status === 'failed')
    throw new WrongPicture(field, `${shown}, ${result.why}, ${expectedPicture} on a public server`);
  return { bytes: result.bytes, release: result.giveBack };
}

async function makeAttachments(
  { pictures: { decoding } }: ApiContext,
  { maskBy }: PictureReaderOptions,
  { image, mask, size }: { image: SourcePicture; mask: SourcePicture | undefined; size: PictureSize },
): Promise<Map<PictureAttachment, Uint8Array>> {
  const leave = await decoding.take(1);
  try {
    const fitted = await fit('image', image, size);
    const made = new Map<PictureAttachment, Uint8Array>([['image', fitted.image]]);
    const painted = mask === undefined ? undefined : await fit('mask', mask, size);
    const byPicture = painted === undefined ? await fitted.transparency() : undefined;
    if (painted !== undefined) made.set('mask', await maskOf(painted, maskBy));
    else if (byPicture !== undefined && maskBy === 'transparency') made.set('mask', byPicture);
    else if (byPicture !== undefined)
      throw new WrongPicture('image', 'transparent in parts, expected an opaque picture, or a mask beside it');
    return made;
  } finally {
    leave();
  }
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

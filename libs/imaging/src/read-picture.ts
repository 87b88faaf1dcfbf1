/**
 * From the files of strangers to pictures that a model starts from. What such a file says of itself is looked at before
 * anything is decoded, and nothing but three formats gets as far as that.
 */
import type { Metadata, Sharp } from 'sharp';
import { loadSharp } from './load-sharp.ts';

/** Pixels. */
export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

/** Why a file is not taken: what it is, and what it should be. */
export interface PictureRefusal {
  readonly status: 'refused';
  /** Such as `a GIF`. */
  readonly came: string;
  readonly expected: string;
}

/** A picture of a stranger, of which only the head was looked at. */
export interface SourcePicture extends PictureSize {
  readonly status: 'read';
  /** The file. */
  readonly bytes: Uint8Array;
}

/** A picture of the size that was asked for. */
export interface FittedPicture {
  readonly status: 'fitted';
  /** RGB as PNG, on white where it was transparent. */
  readonly image: Uint8Array;
  /** Grey as PNG: the brightness of the picture, on black where it was transparent. */
  grey: () => Promise<Uint8Array>;
  /** Grey as PNG: 255 where it was transparent, 0 where it was opaque; undefined where it is opaque everywhere. */
  transparency: () => Promise<Uint8Array | undefined>;
}

const expectedFile = 'a PNG, JPEG or WebP picture';
const formats: Readonly<Record<string, string>> = { png: 'PNG', jpeg: 'JPEG', webp: 'WebP' };
/** Of our own files, which are decoded once and small beside what is drawn. */
const pngLevel = 3;
/** Signs of files, as text of one byte a character, from a place on. */
const signs: readonly [name: string, pattern: RegExp][] = [
  ['png', /^\x89PNG\r\n/],
  ['jpeg', /^\xff\xd8\xff/],
  ['webp', /^RIFF[^]{4}WEBP/],
  ['a GIF', /^GIF8/],
  ['an AVIF or HEIC', /^[^]{4}ftyp/],
  ['a TIFF', /^(?:II\*\0|MM\0\*)/],
  ['a BMP', /^BM/],
  ['a PDF', /^%PDF/],
  ['an SVG', /^[^]{0,900}<svg[\s/>]/i],
];

/**
 * Looks at the head of a file: what it is, and how large. Upright: turned as its EXIF says.
 *
 * @param limits `maxPixels`: larger ones are refused, whatever size they are wanted in.
 */
export async function readPicture(
  bytes: Uint8Array,
  { maxPixels }: { maxPixels: number },
): Promise<SourcePicture | PictureRefusal> {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1024)).toString('latin1');
  const [sign] = signs.find(([, pattern]) => pattern.test(head)) ?? [];
  const name = sign === undefined ? undefined : formats[sign];
  if (name === undefined) return refused(sign ?? `no picture (${bytes.byteLength} bytes)`, expectedFile);
  const metadata = await headOf(bytes);
  if (metadata === undefined) return refused(`a ${name} that is broken or cut short`, expectedFile);
  const { width, height } = metadata.autoOrient;
  if (width * height > maxPixels) return refused(`${width}x${height} pixels`, `at most ${maxPixels} pixels`);
  if ((metadata.pages ?? 1) > 1 || isAnimatedPng(bytes)) return refused(`an animated ${name}`, 'a single picture');
  return { status: 'read', width, height, bytes };
}

/**
 * Decodes a picture, turns it as its EXIF says, brings its colors to sRGB, and makes it fill a size: its ratio is kept, and what
 * is too much is cut evenly from both ends.
 */
export async function fitPicture(source: SourcePicture, size: PictureSize): Promise<FittedPicture | PictureRefusal> {
  const sharp = await loadSharp();
  const fitted = sharp(source.bytes, { failOn: 'error', limitInputPixels: source.width * source.height })
    .autoOrient()
    .toColourspace('srgb')
    // Cut first: what is long and thin would become larger than the memory before it is cut.
    .extract(middleOf(source, size))
    .resize({ ...size, fit: 'fill' })
    .ensureAlpha()
    .raw({ depth: 'uchar' });
  let rgba: Uint8Array;
  try {
    rgba = await fitted.toBuffer();
  } catch {
    // It says what the decoder thinks of the file, which is of no use to who sent it.
    return refused('a picture that is broken or cut short', expectedFile);
  }
  const open = (): Sharp => sharp(rgba, { raw: { ...size, channels: 4 } });
  return {
    status: 'fitted',
    image: await asPng(open().flatten({ background: '#fff' })),
    grey: () => asPng(open().flatten({ background: '#000' }).toColourspace('b-w')),
    async transparency() {
      const { isOpaque } = await open().stats();
      return isOpaque ? undefined : asPng(open().extractChannel('alpha').negate().toColourspace('b-w'));
    },
  };
}

/** The largest part of a picture that has the ratio of a size, from its middle; at least a pixel each way. */
function middleOf({ width, height }: PictureSize, size: PictureSize) {
  const scale = Math.min(width / size.width, height / size.height);
  const part = {
    width: Math.min(width, Math.max(1, Math.round(size.width * scale))),
    height: Math.min(height, Math.max(1, Math.round(size.height * scale))),
  };
  return { ...part, left: Math.floor((width - part.width) / 2), top: Math.floor((height - part.height) / 2) };
}

async function headOf(bytes: Uint8Array): Promise<Metadata | undefined> {
  const sharp = await loadSharp();
  try {
    // The limit is ours to tell.
    return await sharp(bytes, { limitInputPixels: false }).metadata();
  } catch {
    return undefined;
  }
}

async function asPng(picture: Sharp): Promise<Uint8Array> {
  return picture.png({ compressionLevel: pngLevel }).toBuffer();
}

function refused(came: string, expected: string): PictureRefusal {
  return { status: 'refused', came, expected };
}

/** Whether a PNG has the chunk `acTL` before its first `IDAT`, where it must stand: the decoder reads the first picture only, and does not say so. */
function isAnimatedPng(bytes: Uint8Array): boolean {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file[0] !== 0x89) return false;
  for (let at = 8; at + 8 <= file.byteLength; at += 12 + file.readUInt32BE(at)) {
    const type = file.toString('latin1', at + 4, at + 8);
    if (type === 'acTL') return true;
    if (type === 'IDAT') return false;
  }
  return false;
}

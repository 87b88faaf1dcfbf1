/**
 * Decodes a client's image file and fits it to a model's input. Runs in a separate process (`reader-process.ts`),
 * because a malicious file may exploit the decoder or exhaust memory.
 */
import type { Metadata, Sharp } from 'sharp';
import { loadSharp } from '../codec/load-sharp.ts';
import { type ImageRefusal, type ImageSize, refused } from './image-refusal.ts';
import { type ImageFormat, stripImage } from './strip-image.ts';

/** An image file whose header has been read. */
export interface SourceImage extends ImageSize {
  readonly status: 'read';
  /** The file, reduced to what a decoder needs. */
  readonly bytes: Uint8Array;
}

/** Outputs that `fitImage` can make from an image: the fields of `FittedImage`. */
export type ImagePart = 'image' | 'grey' | 'transparency';

/** The requested parts, as PNG files of the requested size. */
export interface FittedImage {
  readonly status: 'fitted';
  /** RGB; white where the image was transparent. */
  readonly image?: Uint8Array;
  /** Greyscale; black where the image was transparent. */
  readonly grey?: Uint8Array;
  /** Greyscale: 255 where the image was transparent, 0 where it was opaque. Undefined if all pixels are opaque. */
  readonly transparency?: Uint8Array;
}

const expectedFile = 'a PNG, JPEG or WebP image';
/** PNG compression level. Low: these files are decoded only once and are small compared to results. */
const pngLevel = 3;
/** Patterns for the first bytes of files, as Latin-1 text. */
const signatures: readonly [name: string, pattern: RegExp][] = [
  ['PNG', /^\x89PNG\r\n/],
  ['JPEG', /^\xff\xd8\xff/],
  ['WebP', /^RIFF[^]{4}WEBP/],
  ['a GIF', /^GIF8/],
  ['an AVIF or HEIC', /^[^]{4}ftyp/],
  ['a TIFF', /^(?:II\*\0|MM\0\*)/],
  ['a BMP', /^BM/],
  ['a PDF', /^%PDF/],
  ['an SVG', /^[^]{0,900}<svg[\s/>]/i],
];
const formats: ReadonlySet<string> = new Set<ImageFormat>(['PNG', 'JPEG', 'WebP']);

/**
 * Reads a file's header: its format, and its size after rotation by EXIF. Overwrites `bytes`.
 *
 * @param limits `maxPixels`: larger images are refused, even if a smaller size is requested.
 */
export async function readImage(
  bytes: Uint8Array,
  { maxPixels }: { maxPixels: number },
): Promise<SourceImage | ImageRefusal> {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1024)).toString('latin1');
  const [format] = signatures.find(([, pattern]) => pattern.test(head)) ?? [];
  if (format === undefined) return refused(`not an image (${bytes.byteLength} bytes)`, expectedFile);
  if (!formats.has(format)) return refused(format, expectedFile);
  const stripped = stripImage(format as ImageFormat, bytes);
  const refuseBroken = (): ImageRefusal => refused(`a ${format} that is broken or cut short`, expectedFile);
  if (stripped.status === 'broken') return refuseBroken();
  if (stripped.status === 'refused') return stripped;
  const refuseTooLarge = (size: ImageSize): ImageRefusal | undefined =>
    size.width * size.height > maxPixels
      ? refused(`${size.width}x${size.height} pixels`, `at most ${maxPixels} pixels`)
      : undefined;
  const refusal = refuseTooLarge(stripped);
  if (refusal !== undefined) return refusal;
  if (stripped.isAnimated) return refused(`an animated ${format}`, 'a single image');
  const metadata = await metadataOf(stripped.bytes);
  if (metadata === undefined || metadata.format !== format.toLowerCase()) return refuseBroken();
  const { width, height } = metadata.autoOrient;
  return refuseTooLarge({ width, height }) ?? { status: 'read', width, height, bytes: stripped.bytes };
}

/**
 * Decodes an image, rotates it by EXIF, converts it to sRGB, and makes it fill a size: the aspect ratio is preserved,
 * and the excess is cropped evenly on both sides.
 */
export async function fitImage(
  source: SourceImage,
  { size, parts }: { size: ImageSize; parts: readonly ImagePart[] },
): Promise<FittedImage | ImageRefusal> {
  const sharp = await loadSharp();
  const fitted = sharp(source.bytes, { failOn: 'error', limitInputPixels: source.width * source.height })
    .autoOrient()
    .toColourspace('srgb')
    // Crop before the resize: a resized long, thin image could exceed the memory.
    .extract(cropAreaOf(source, size))
    .resize({ ...size, fit: 'fill' })
    .ensureAlpha()
    .raw({ depth: 'uchar' });
  let rgba: Uint8Array;
  try {
    rgba = await fitted.toBuffer();
  } catch {
    // Drop the decoder's message: it does not help the client.
    return refused('an image that is broken or cut short', expectedFile);
  }
  const open = (): Sharp => sharp(rgba, { raw: { ...size, channels: 4 } });
  const makers = {
    image: () => asPng(open().flatten({ background: '#fff' })),
    grey: () => asPng(open().flatten({ background: '#000' }).toColourspace('b-w')),
    async transparency() {
      const { isOpaque } = await open().stats();
      return isOpaque ? undefined : asPng(open().extractChannel('alpha').negate().toColourspace('b-w'));
    },
  };
  const made = await Promise.all(parts.map(async (part) => [part, await makers[part]()]));
  return { status: 'fitted', ...(Object.fromEntries(made) as Omit<FittedImage, 'status'>) };
}

/** Returns the largest centered area with the aspect ratio of `size`; each side has at least one pixel. */
function cropAreaOf({ width, height }: ImageSize, size: ImageSize) {
  const scale = Math.min(width / size.width, height / size.height);
  const part = {
    width: Math.min(width, Math.max(1, Math.round(size.width * scale))),
    height: Math.min(height, Math.max(1, Math.round(size.height * scale))),
  };
  return { ...part, left: Math.floor((width - part.width) / 2), top: Math.floor((height - part.height) / 2) };
}

async function metadataOf(bytes: Uint8Array): Promise<Metadata | undefined> {
  const sharp = await loadSharp();
  try {
    // `readImage` has checked the size.
    return await sharp(bytes, { limitInputPixels: false }).metadata();
  } catch {
    return undefined;
  }
}

async function asPng(image: Sharp): Promise<Uint8Array> {
  return image.png({ compressionLevel: pngLevel }).toBuffer();
}

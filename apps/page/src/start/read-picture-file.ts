import { canvasFile, type PictureSize } from './mask-drawing.ts';

/** A picture to start from, as it is sent. */
export interface StartFile extends PictureSize {
  file: Blob;
}

/** No model draws larger ones: photographs of a phone need not travel whole. */
const maxSide = 2048;

/** A file as the API takes it, turned as its EXIF says; undefined if it is no picture that this browser knows. */
export async function readPictureFile(file: Blob): Promise<StartFile | undefined> {
  const bitmap = await createImageBitmap(file).catch(() => undefined);
  if (bitmap === undefined) return undefined;
  const { width, height } = bitmap;
  const scale = maxSide / Math.max(width, height);
  try {
    return scale >= 1 ? { file, width, height } : await smaller(bitmap, scale);
  } finally {
    bitmap.close();
  }
}

async function smaller(bitmap: ImageBitmap, scale: number): Promise<StartFile> {
  const canvas = document.createElement('canvas');
  const size = {
    width: Math.max(1, Math.round(bitmap.width * scale)),
    height: Math.max(1, Math.round(bitmap.height * scale)),
  };
  const context = Object.assign(canvas, size).getContext('2d')!;
  context.imageSmoothingQuality = 'high';
  context.drawImage(bitmap, 0, 0, size.width, size.height);
  // Where a browser makes no WebP, it makes PNG.
  return { file: await canvasFile(canvas, 'image/webp'), ...size };
}

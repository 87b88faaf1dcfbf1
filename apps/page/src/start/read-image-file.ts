import { canvasFile, type ImageSize } from './mask-drawing.ts';

/** An input image, as it is sent. */
export interface StartFile extends ImageSize {
  file: Blob;
}

/** No model makes larger images, so photographs are downscaled before the upload. */
const maxSide = 2048;

/** Reads a file, rotated by its EXIF orientation; returns undefined if this browser cannot decode it. */
export async function readImageFile(file: Blob): Promise<StartFile | undefined> {
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
  // Browsers that cannot encode WebP make PNG.
  return { file: await canvasFile(canvas, 'image/webp'), ...size };
}

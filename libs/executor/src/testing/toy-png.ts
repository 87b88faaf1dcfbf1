import { createHash } from 'node:crypto';
import { encodeImage, withMetadata } from '@darkroom/imaging';
import type { ImageRecipe } from '@darkroom/kinds';

/** Returns a PNG of 8 × 8 pixels that depends on the text, and has the text in a block of its own, as servers do. */
export async function toyPng(text: string): Promise<Buffer> {
  const hash = createHash('sha256').update(text).digest();
  const pixels = Buffer.alloc(8 * 8 * 3, hash);
  const facts = { width: 8, height: 8 };
  const file = await encodeImage({ data: pixels, facts }, { outputFormat: 'png', outputCompression: 100 });
  return Buffer.from(withMetadata(file, { prompt: text } as ImageRecipe).data);
}

import type { RowOutput } from '@darkroom/core';
import { stripImage } from '@darkroom/imaging';
import { imageTypeOf } from '@darkroom/kinds';
import { unavailable } from '../calls/backend-error.ts';

const formats = { 'image/png': 'PNG', 'image/jpeg': 'JPEG', 'image/webp': 'WebP' } as const;

/**
 * Returns a server's image file as an output, with its real size and without texts: servers write prompts and workflows
 * into them.
 *
 * @param file is overwritten.
 * @throws UpstreamError `unavailable` if it is not an image file.
 */
export function toImageOutput(file: Buffer, { seed }: { seed: number }): RowOutput {
  const contentType = imageTypeOf(file);
  const stripped = contentType && stripImage(formats[contentType], file);
  if (contentType === undefined || stripped?.status !== 'stripped')
    throw unavailable(`sent ${file.byteLength} bytes as an image, expected PNG, JPEG or WebP`);
  const { bytes: data, width, height } = stripped;
  return { data, contentType, facts: { width, height, seed } };
}

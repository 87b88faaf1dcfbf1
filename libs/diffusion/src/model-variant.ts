import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { modelFileError } from './model-file.ts';

/** How a graph's weights are kept; the suffix of its file, `model.onnx` being fp32. */
export const modelVariants = ['int8', 'fp32', 'fp16'] as const;
export type ModelVariant = (typeof modelVariants)[number];

/** The names of their files, in the folder of each part. */
export const variantFileNames: Readonly<Record<ModelVariant, string>> = {
  int8: 'model_int8.onnx',
  fp32: 'model.onnx',
  fp16: 'model_fp16.onnx',
};

/**
 * The graph of one part of a model: the variant asked for, or else the first there is of int8 (a quarter of the memory at
 * the same speed), fp32, fp16 (slower than fp32 on a CPU, so never by itself there).
 *
 * @param part its folder, such as `unet`.
 * @returns the path relative to the directory.
 * @throws DarkroomError `model_unsupported` if there is none.
 */
export async function findModelFile(directory: string, part: string, variant?: ModelVariant): Promise<string> {
  const candidates = variant === undefined ? modelVariants : [variant];
  for (const candidate of candidates) {
    const file = `${part}/${variantFileNames[candidate]}`;
    if (await isThere(join(directory, file))) return file;
  }
  const expected = candidates.map((candidate) => variantFileNames[candidate]).join(', ');
  throw modelFileError(part, `has none of ${expected}`);
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}

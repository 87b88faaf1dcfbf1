import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { ImageCard } from '@darkroom/kinds';
import { modelFileError } from '@darkroom/runtime/model-file';
import { type DarkroomJson, maxExampleBytes } from './darkroom-json.ts';

const types: Readonly<Record<string, string>> = { '.webp': 'image/webp', '.png': 'image/png', '.jpg': 'image/jpeg' };

/**
 * Reads the thumbnails of the examples in `darkroom.json`.
 *
 * @throws DarkroomError `model_unsupported` naming the field whose file is missing or too large.
 */
export async function readExamples(
  directory: string,
  { examples }: Pick<DarkroomJson, 'examples'>,
): Promise<Pick<ImageCard, 'examples'>> {
  if (examples === undefined || examples.length === 0) return {};
  const read = examples.map(async ({ prompt, seed, image }, at) => {
    const field = `examples.${at}.image`;
    const data = await readFile(join(directory, image)).catch((error: unknown) => {
      throw modelFileError('darkroom.json', `${field}: ${image} cannot be read`, error);
    });
    if (data.length > maxExampleBytes) {
      const problem = `${image} has ${data.length} bytes, expected at most ${maxExampleBytes}`;
      throw modelFileError('darkroom.json', `${field}: ${problem}`);
    }
    return { prompt, seed, image: `data:${types[extname(image)]};base64,${data.toString('base64')}` };
  });
  return { examples: await Promise.all(read) };
}

/** Reads the recordings of tools/golden/record-edits.py for tests. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { encodeImage } from '@darkroom/imaging';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors');
const suffix = '-inpainting';

/** A model's directory; a temporary one if the model is assembled. */
export interface EditModel {
  readonly directory: string;
  remove(): Promise<void>;
}

/** Returns the model of a recording. A model named *-inpainting is the one without the suffix, with another UNet. */
export async function openEditModel(name: string): Promise<EditModel> {
  if (!name.endsWith(suffix)) return { directory: modelOf(name), remove: async () => {} };
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-edits-'));
  await cp(modelOf(name.slice(0, -suffix.length)), directory, { recursive: true });
  await cp(join(vectors, 'edits/unets', name), join(directory, 'unet'), { recursive: true });
  const index = join(directory, 'model_index.json');
  const text = await readFile(index, 'utf8');
  await writeFile(index, text.replace(/(Stable\w+)Pipeline/u, '$1InpaintPipeline'));
  return { directory, remove: () => rm(directory, { recursive: true }) };
}

function modelOf(name: string): string {
  return join(vectors, 'pipelines', name, 'model');
}

export interface EditRequest {
  width: number;
  height: number;
  mask?: boolean;
}

/** Images and masks by their sizes, raw and in base64. */
export type GivenImages = Readonly<Record<string, { image: string; mask: string } | undefined>>;

/** Returns the attachments of a recorded request in the format that workers receive. */
export async function attachmentsOf(
  given: GivenImages,
  { width, height, mask: hasMask = false }: EditRequest,
): Promise<Map<string, Uint8Array>> {
  const { image, mask } = given[`${width}x${height}`]!;
  const pngOf = async (data: Uint8Array): Promise<Uint8Array> => {
    const png = { outputFormat: 'png', outputCompression: 100 } as const;
    return (await encodeImage({ data, facts: { width, height } }, png)).data;
  };
  const grey = Buffer.from(mask, 'base64');
  const inColors = Uint8Array.from({ length: grey.length * 3 }, (_, at) => grey[Math.floor(at / 3)]!);
  const files = new Map([['image', await pngOf(Uint8Array.from(Buffer.from(image, 'base64')))]]);
  return hasMask ? files.set('mask', await pngOf(inColors)) : files;
}

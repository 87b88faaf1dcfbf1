/** What tools/golden/record-edits.py recorded, as tests need it. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { encodePicture } from '@darkroom/imaging';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors');
const suffix = '-inpainting';

/** A model's directory, in a place of its own where it is put together first. */
export interface EditModel {
  readonly directory: string;
  remove(): Promise<void>;
}

/** The model that a recording is of. One whose name ends in -inpainting is that without the ending, with another UNet. */
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

export interface AskedEdit {
  width: number;
  height: number;
  mask?: boolean;
}

/** Pictures and masks by their sizes, raw and in base64. */
export type GivenPictures = Readonly<Record<string, { image: string; mask: string } | undefined>>;

/** What came with a recorded request, as a worker gets it. */
export async function attachmentsOf(
  given: GivenPictures,
  { width, height, mask: hasMask = false }: AskedEdit,
): Promise<Map<string, Uint8Array>> {
  const { image, mask } = given[`${width}x${height}`]!;
  const pngOf = async (data: Uint8Array): Promise<Uint8Array> => {
    const png = { outputFormat: 'png', outputCompression: 100 } as const;
    return (await encodePicture({ data, facts: { width, height } }, png)).data;
  };
  const grey = Buffer.from(mask, 'base64');
  const inColors = Uint8Array.from({ length: grey.length * 3 }, (_, at) => grey[Math.floor(at / 3)]!);
  const files = new Map([['image', await pngOf(Uint8Array.from(Buffer.from(image, 'base64')))]]);
  return hasMask ? files.set('mask', await pngOf(inColors)) : files;
}

import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { DtypeChoice, ModelDtype, ModelPart } from '@darkroom/core';
import { modelFileError } from './model-file.ts';
import { dtypeOfWeights } from '../onnx/dtype-of-weights.ts';
import { ProtobufError } from '../onnx/protobuf-file.ts';
import { readOnnxFile } from '../onnx/read-onnx-file.ts';
import type { PipelineFolders } from './pipeline-classes.ts';

/** Those that graphs of pictures are known in. In the order in which `auto` takes them. */
export const pictureDtypes = ['int8', 'fp32', 'fp16'] as const satisfies readonly ModelDtype[];
export type PictureDtype = (typeof pictureDtypes)[number];

/** The names of graphs' files in the folder of each part, by what exporters call them for. What is in them can differ. */
export const dtypeFileNames: Readonly<Record<PictureDtype, string>> = {
  int8: 'model_int8.onnx',
  fp32: 'model.onnx',
  fp16: 'model_fp16.onnx',
};

/**
 * The graph of one part of a model: in the dtype asked for, or else the first there is of int8 (a quarter of the bytes),
 * fp32, fp16 (slower than fp32 on a CPU, so never by itself there).
 *
 * @returns the path relative to the directory.
 * @throws DarkroomError `model_unsupported` if there is none, saying what there is.
 */
export async function findModelFile(directory: string, part: ModelPart, dtype?: ModelDtype): Promise<string> {
  const there = await listFilesOf(directory, part);
  const found = dtype === undefined ? there[0] : there.find((each) => each.dtype === dtype);
  if (found !== undefined) return found.file;
  if (there.length === 0) throw modelFileError(part, `has none of ${Object.values(dtypeFileNames).join(', ')}`);
  const instead = there.map((each) => `${each.dtype} (${each.file})`).join(' and ');
  const areThere = there.length === 1 ? 'there is' : 'there are';
  throw modelFileError(part, `has no graph in ${dtype}; of MODEL_DTYPE's values ${areThere} ${instead}`);
}

/**
 * The graph that turns pictures into latents, which a model may come without. It is often there in one dtype only, so that
 * one chosen for all parts is taken where there is such a file, and else the first.
 *
 * @returns as `findModelFile`; undefined if there is none.
 * @throws DarkroomError `model_unsupported` if the choice names this part, and there is none of that.
 */
export async function findVaeEncoderFile(directory: string, { all, parts }: DtypeChoice): Promise<string | undefined> {
  const part = 'vae_encoder';
  const dtype = parts[part];
  if (dtype !== undefined) return findModelFile(directory, part, dtype === 'auto' ? undefined : dtype);
  const there = await listFilesOf(directory, part);
  return (there.find((each) => each.dtype === all) ?? there[0])?.file;
}

/** The graph of a part that a model may come without, in the first dtype there is; undefined if there is none. */
export async function findOptionalFile(directory: string, part: string): Promise<string | undefined> {
  return (await listFilesOf(directory, part))[0]?.file;
}

/** Of each part of a model the dtypes that it has a graph in. */
export async function listDtypes(
  directory: string,
  { graphs: parts }: PipelineFolders,
): Promise<ReadonlyMap<ModelPart, readonly PictureDtype[]>> {
  const entries = parts.map(async (part) => {
    const files = await listFilesOf(directory, part);
    return [part, [...new Set(files.map(({ dtype }) => dtype))]] as const;
  });
  return new Map(await Promise.all(entries));
}

/** Relative to the model's directory, in the order in which `auto` takes them. */
async function listFilesOf(directory: string, part: string): Promise<{ file: string; dtype: PictureDtype }[]> {
  const named = pictureDtypes.map((name) => ({ file: `${part}/${dtypeFileNames[name]}`, name }));
  const readable = await Promise.allSettled(named.map(({ file }) => access(join(directory, file))));
  const there = named.filter((_, at) => readable[at]!.status === 'fulfilled');
  const files = there.map(({ file, name }) => ({ file, dtype: dtypeOf(join(directory, file)) ?? name }));
  return pictureDtypes.flatMap((dtype) => files.filter((each) => each.dtype === dtype));
}

/** By its weights; undefined where they are of another type, or the file is damaged, which is said when it is loaded. */
function dtypeOf(path: string): PictureDtype | undefined {
  try {
    const dtype = dtypeOfWeights(readOnnxFile(path).tensors);
    return pictureDtypes.find((known) => known === dtype);
  } catch (error) {
    const isOfFile = error instanceof ProtobufError || (error as NodeJS.ErrnoException).code !== undefined;
    if (isOfFile) return undefined;
    throw error;
  }
}

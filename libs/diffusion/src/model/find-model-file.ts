import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { autoDtypes, type Device, type DtypeChoice, type ModelDtype, type ModelPart, pairUp } from '@darkroom/core';
import { z } from 'zod';
import { modelFileError, readModelConfig, unlessMissing } from '@darkroom/runtime/model-file';
import { dtypeOfWeights } from '../onnx/dtype-of-weights.ts';
import { ProtobufError } from '../onnx/protobuf-file.ts';
import { readOnnxFile } from '../onnx/read-onnx-file.ts';
import type { PipelineFolders } from './config/pipeline-classes.ts';

/** Supported dtypes of image models' graphs. */
export const imageDtypes = ['int8', 'fp32', 'fp16'] as const satisfies readonly ModelDtype[];
export type ImageDtype = (typeof imageDtypes)[number];

/** Graph file names in each part's folder, by the dtype that exporters use them for. The weights' dtype may differ. */
export const dtypeFileNames: Readonly<Record<ImageDtype, string>> = {
  int8: 'model_int8.onnx',
  fp32: 'model.onnx',
  fp16: 'model_fp16.onnx',
};

/**
 * Finds the graph of one part of a model: in the given dtype, or else the first in the order of `autoDtypes` for the
 * device.
 *
 * @returns the path relative to the directory.
 * @throws DarkroomError `model_unsupported` if there is none, listing the dtypes that exist.
 */
export async function findModelFile(
  directory: string,
  part: ModelPart,
  { dtype, device }: { dtype?: ModelDtype; device?: Device } = {},
): Promise<string> {
  const available = await listFilesOf(directory, part, device);
  const found = dtype === undefined ? available[0] : available.find((each) => each.dtype === dtype);
  if (found !== undefined) return found.file;
  if (available.length === 0) throw modelFileError(part, `has none of ${Object.values(dtypeFileNames).join(', ')}`);
  const alternatives = available.map((each) => `${each.dtype} (${each.file})`).join(' and ');
  const verb = available.length === 1 ? 'there is' : 'there are';
  throw modelFileError(part, `has no graph in ${dtype}; of MODEL_DTYPE's values ${verb} ${alternatives}`);
}

/**
 * Finds the VAE encoder, which is optional. It often exists in one dtype only, so a dtype chosen for all parts is a
 * preference here, not a requirement.
 *
 * @returns as `findModelFile`; undefined if there is none.
 * @throws DarkroomError `model_unsupported` if a dtype is chosen for this part and there is no such graph.
 */
export async function findVaeEncoderFile(
  directory: string,
  { all, parts }: DtypeChoice,
  device?: Device,
): Promise<string | undefined> {
  const part = 'vae_encoder';
  const dtype = parts[part];
  if (dtype !== undefined)
    return findModelFile(directory, part, { dtype: dtype === 'auto' ? undefined : dtype, device });
  const available = await listFilesOf(directory, part, device);
  return (available.find((each) => each.dtype === all) ?? available[0])?.file;
}

/** Finds the graph of an optional part, in the first dtype that exists; returns undefined if there is none. */
export async function findOptionalFile(directory: string, part: string, device?: Device): Promise<string | undefined> {
  return (await listFilesOf(directory, part, device))[0]?.file;
}

/** Returns the dtypes of each part of a model. */
export async function listDtypes(
  directory: string,
  { graphs: parts }: PipelineFolders,
): Promise<ReadonlyMap<ModelPart, readonly ImageDtype[]>> {
  const entries = parts.map(async (part) => {
    const files = await listFilesOf(directory, part);
    return [part, [...new Set(files.map(({ dtype }) => dtype))]] as const;
  });
  return new Map(await Promise.all(entries));
}

/** Lists a part's graphs relative to the model's directory, in the order of preference of `auto`. */
async function listFilesOf(
  directory: string,
  part: string,
  device?: Device,
): Promise<{ file: string; dtype: ImageDtype }[]> {
  const candidates = imageDtypes.map((name) => ({ file: `${part}/${dtypeFileNames[name]}`, name }));
  const readable = await Promise.allSettled(candidates.map(({ file }) => access(join(directory, file))));
  const available = pairUp(candidates, readable).filter(([, { status }]) => status === 'fulfilled');
  const files = available.map(([{ file, name }]) => ({ file, dtype: dtypeOf(join(directory, file)) ?? name }));
  const overflowsInHalf = part.startsWith('vae_') && files.length > 1 && (await isUpcast(directory, part));
  return autoDtypes(device, { overflowsInHalf }).flatMap((dtype) => files.filter((each) => each.dtype === dtype));
}

/** Reads `force_upcast`, which diffusers reads from the same file. */
async function isUpcast(directory: string, part: string): Promise<boolean> {
  const schema = z.looseObject({ force_upcast: z.boolean().nullish() });
  const config = await unlessMissing(readModelConfig(directory, `${part}/config.json`, schema));
  return config?.force_upcast === true;
}

/**
 * Reads the dtype of a graph's weights. Returns undefined for an unsupported dtype or a damaged file: loading reports
 * it.
 */
function dtypeOf(path: string): ImageDtype | undefined {
  try {
    const dtype = dtypeOfWeights(readOnnxFile(path).tensors);
    return imageDtypes.find((known) => known === dtype);
  } catch (error) {
    const isFileError = error instanceof ProtobufError || (error as NodeJS.ErrnoException).code !== undefined;
    if (isFileError) return undefined;
    throw error;
  }
}

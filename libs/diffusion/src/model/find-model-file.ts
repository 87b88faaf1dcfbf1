import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { modelDtypes } from '@darkroom/core';
import type { ModelDtype, ModelPart } from '@darkroom/core';
import { modelFileError } from './model-file.ts';
import type { PipelineFolders } from './pipeline-classes.ts';

/** The names of graphs' files in the folder of each part, by how their weights are kept. */
export const dtypeFileNames: Readonly<Record<ModelDtype, string>> = {
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
  const there = await listDtypesOf(directory, part);
  const found = dtype === undefined ? there[0] : there.find((each) => each === dtype);
  if (found !== undefined) return `${part}/${dtypeFileNames[found]}`;
  const expected =
    dtype === undefined ? `none of ${Object.values(dtypeFileNames).join(', ')}` : `no ${dtypeFileNames[dtype]}`;
  const instead =
    there.length === 0
      ? ''
      : `; of MODEL_DTYPE's values there ${there.length === 1 ? 'is' : 'are'} ${there.join(' and ')}`;
  throw modelFileError(part, `has ${expected}${instead}`);
}

/** Of each part of a model the dtypes that it has a graph in. */
export async function listDtypes(
  directory: string,
  { graphs: parts }: PipelineFolders,
): Promise<ReadonlyMap<ModelPart, readonly ModelDtype[]>> {
  const entries = parts.map(async (part) => [part, await listDtypesOf(directory, part)] as const);
  return new Map(await Promise.all(entries));
}

async function listDtypesOf(directory: string, part: ModelPart): Promise<ModelDtype[]> {
  const isThere = await Promise.all(
    modelDtypes.map((dtype) => isReadable(join(directory, part, dtypeFileNames[dtype]))),
  );
  return modelDtypes.filter((_, at) => isThere[at]);
}

async function isReadable(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}

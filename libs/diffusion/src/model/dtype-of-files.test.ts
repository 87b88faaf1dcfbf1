/** The dtype of a graph is that of its weights, whatever the file is called. */
import { cp, mkdtemp, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseDtypeChoice } from '@darkroom/core';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { describeModel } from './describe-model.ts';
import { listDtypes } from './find-model-file.ts';
import { readModelDirectory } from './model-directory.ts';
import { dtypeOfWeights } from '../onnx/dtype-of-weights.ts';
import { bytesField, bytesHeader, numberField } from '@darkroom/runtime/protobuf';
import { readOnnxFile } from '../onnx/read-onnx-file.ts';

const root = resolve(import.meta.dirname, '../../../..');
const parts = ['text_encoder', 'unet', 'vae_decoder'];

/** Copies a model that has fp16 and INT8 graphs. */
let directory: string;
beforeEach(async () => {
  const scratch = await mkdtemp(join(tmpdir(), 'darkroom-dtype-'));
  onTestFinished(() => rm(scratch, { recursive: true }));
  directory = join(scratch, 'tiny');
  await cp(join(root, 'tools/golden/vectors/export/model'), directory, { recursive: true });
  await cp(join(root, 'models/emoji-sd/tokenizer'), join(directory, 'tokenizer'), { recursive: true });
});

async function renameGraphs(from: string, to: string): Promise<void> {
  for (const part of parts) await rename(join(directory, part, from), join(directory, part, to));
}

async function describeAs(text: string) {
  const { graphs } = describeModel(await readModelDirectory(directory, { dtypes: parseDtypeChoice(text)! }));
  return graphs.map(({ files, dtype }) => `${files[0]} ${dtype}`);
}

it.each([
  ['fp16', 'model_fp16.onnx'],
  ['int8', 'model_int8.onnx'],
])('is %s by its weights, although the file is called model.onnx', async (dtype, file) => {
  await renameGraphs(file, 'model.onnx');
  expect(await describeAs(dtype)).toEqual(parts.map((part) => `${part}/model.onnx ${dtype}`));
  const { folders } = await readModelDirectory(directory);
  expect([...(await listDtypes(directory, folders))]).toEqual(parts.map((part) => [part, ['int8', 'fp16']]));
});

it('that is missing is refused, with the dtypes that exist and their files', async () => {
  await renameGraphs('model_fp16.onnx', 'model.onnx');
  // The error names one of the parts that lack the dtype.
  await expect(describeAs('fp32')).rejects.toThrow(
    /(?<part>\w+): has no graph in fp32; of MODEL_DTYPE's values there are int8 \(\k<part>\/model_int8\.onnx\) and fp16 \(\k<part>\/model\.onnx\)/,
  );
});

it('decides the choice of auto: int8 before fp16, regardless of file names', async () => {
  await renameGraphs('model_int8.onnx', 'other');
  await renameGraphs('model_fp16.onnx', 'model_int8.onnx');
  await renameGraphs('other', 'model.onnx');
  expect(await describeAs('auto')).toEqual(parts.map((part) => `${part}/model.onnx int8`));
});

it('of a damaged file comes from its name, so that loading it fails with that name', async () => {
  await writeFile(join(directory, 'unet/model_int8.onnx'), '<!doctype html>');
  await expect(describeAs('int8')).rejects.toThrow('unet/model_int8.onnx: is not a whole ONNX file');
});

it('is read without reading the weights, which may be gigabytes', async () => {
  const file = join(directory, 'large.onnx');
  const bytes = 3 * 2 ** 30;
  // A TensorProto with shape, float16 and its bytes, which are a hole in a sparse file.
  const tensor = Buffer.concat([numberField(1, bytes / 2), numberField(2, 10), bytesHeader(9, bytes)]);
  const floats = bytesField(5, Buffer.concat([numberField(1, 2), numberField(2, 1), bytesField(9, new Uint8Array(8))]));
  const graph = Buffer.concat([floats, bytesHeader(5, tensor.length + bytes), tensor]);
  const model = Buffer.concat([bytesHeader(7, graph.length + bytes), graph]);
  await writeFile(file, model);
  await truncate(file, model.length + bytes);
  // Reading it all would fail: Node reads at most 2 GiB at once.
  expect(dtypeOfWeights(readOnnxFile(file).tensors)).toBe('fp16');
});

it.each([
  [['cuda'], 'fp16'],
  [['cuda:1', 'cpu'], 'fp16'],
  [['cpu', 'cuda'], 'int8'],
  [['webgpu', 'cpu'], 'int8'],
] as const)('auto depends on the first device: for %j it is %s', async (devices, dtype) => {
  const { graphs } = describeModel(await readModelDirectory(directory, { devices }));
  expect(graphs.map((graph) => graph.dtype)).toEqual(parts.map(() => dtype));
  const chosen = describeModel(await readModelDirectory(directory, { devices, dtypes: parseDtypeChoice('int8')! }));
  expect(chosen.graphs.map((graph) => graph.dtype)).toEqual(parts.map(() => 'int8'));
});

it('auto never picks fp16, even on CUDA, for a VAE whose values overflow in it', async () => {
  const file = join(directory, 'vae_decoder/config.json');
  const config = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(file, JSON.stringify({ ...config, force_upcast: true }));
  const dtypesOf = async () => {
    const { graphs } = describeModel(await readModelDirectory(directory, { devices: ['cuda'] }));
    return graphs.map(({ dtype }) => dtype);
  };
  expect(await dtypesOf()).toEqual(['fp16', 'fp16', 'int8']);
  // The only graph there is.
  await rm(join(directory, 'vae_decoder/model_int8.onnx'));
  expect(await dtypesOf()).toEqual(['fp16', 'fp16', 'fp16']);
});

/** A dtype is what a graph's weights are, whatever its file is called. */
import { cp, mkdtemp, rename, rm, truncate, writeFile } from 'node:fs/promises';
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

/** A model in fp16 and INT8. */
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
])('is %s by the weights of a file that is called model.onnx', async (dtype, file) => {
  await renameGraphs(file, 'model.onnx');
  expect(await describeAs(dtype)).toEqual(parts.map((part) => `${part}/model.onnx ${dtype}`));
  const { folders } = await readModelDirectory(directory);
  expect([...(await listDtypes(directory, folders))]).toEqual(parts.map((part) => [part, ['int8', 'fp16']]));
});

it('that is not there is refused with what is, and where', async () => {
  await renameGraphs('model_fp16.onnx', 'model.onnx');
  // Of all that have none, one is named.
  await expect(describeAs('fp32')).rejects.toThrow(
    /(?<part>\w+): has no graph in fp32; of MODEL_DTYPE's values there are int8 \(\k<part>\/model_int8\.onnx\) and fp16 \(\k<part>\/model\.onnx\)/,
  );
});

it('decides what auto takes: int8 before fp16, whatever they are called', async () => {
  await renameGraphs('model_int8.onnx', 'other');
  await renameGraphs('model_fp16.onnx', 'model_int8.onnx');
  await renameGraphs('other', 'model.onnx');
  expect(await describeAs('auto')).toEqual(parts.map((part) => `${part}/model.onnx int8`));
});

it('of a damaged file is what it is called, so that it is named when it is loaded', async () => {
  await writeFile(join(directory, 'unet/model_int8.onnx'), '<!doctype html>');
  await expect(describeAs('int8')).rejects.toThrow('unet/model_int8.onnx: is not a whole ONNX file');
});

it('is read without the weights, of which there may be gigabytes', async () => {
  const file = join(directory, 'large.onnx');
  const bytes = 3 * 2 ** 30;
  // TensorProto: its shape, float16, and as many bytes, which are a hole in the file and take no disk.
  const tensor = Buffer.concat([numberField(1, bytes / 2), numberField(2, 10), bytesHeader(9, bytes)]);
  const floats = bytesField(5, Buffer.concat([numberField(1, 2), numberField(2, 1), bytesField(9, new Uint8Array(8))]));
  const graph = Buffer.concat([floats, bytesHeader(5, tensor.length + bytes), tensor]);
  const model = Buffer.concat([bytesHeader(7, graph.length + bytes), graph]);
  await writeFile(file, model);
  await truncate(file, model.length + bytes);
  // A read of all of it would fail: Node's end at 2 GiB.
  expect(dtypeOfWeights(readOnnxFile(file).tensors)).toBe('fp16');
});

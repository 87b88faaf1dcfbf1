import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { externalizeWeights } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { describeModel } from '../model/describe-model.ts';
import { readModelDirectory } from '../model/model-directory.ts';
import { loadPipeline } from './load-pipeline.ts';

const source = resolve(import.meta.dirname, '../../../../models/emoji-sd');

async function draw(directory: string) {
  const pipeline = await loadPipeline({ directory, threads: 1 });
  const size = { width: 64, height: 64, n: 1, numInferenceSteps: 2 };
  const request = {
    prompt: 'a cat',
    negativePrompt: '',
    seed: 1,
    guidanceScale: 3,
    scheduler: 'ddim',
    previewEvery: 0,
  };
  const [row] = await pipeline.createRows({ id: 'request', input: { ...size, ...request } });
  while (!row!.isDone) await pipeline.step([row!]);
  const { data } = await pipeline.finish(row!);
  await pipeline.dispose();
  return data;
}

// The file is sparse where a larger model's weights would be, so it takes no disk and is as quick to read.
it.each([2 ** 31 - 4096, 2 ** 32 + 4096])('reads weights from byte %d of a file', async (firstByte) => {
  const directory = join(await mkdtemp(join(tmpdir(), 'darkroom-large-')), 'tiny');
  onTestFinished(() => rm(join(directory, '..'), { recursive: true }));
  await cp(source, directory, { recursive: true });
  externalizeWeights(join(directory, 'unet/model_int8.onnx'), 'model_int8.onnx_data', { firstByte });
  const [, unet] = describeModel(await readModelDirectory(directory)).graphs;
  expect(unet?.files).toEqual(['unet/model_int8.onnx', 'unet/model_int8.onnx_data']);
  expect(unet?.bytes).toBeGreaterThan(firstByte + 9e6);
  expect(Buffer.compare(await draw(directory), await draw(source))).toBe(0);
});

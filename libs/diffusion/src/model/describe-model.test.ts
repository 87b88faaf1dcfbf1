import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { describeModel } from './describe-model.ts';
import { readModelDirectory } from './model-directory.ts';

const source = resolve(import.meta.dirname, '../../../../models/emoji-sd');

it('counts the parameters of the embedded model as its README does', async () => {
  const { graphs, hasTimestepPerRow } = describeModel(await readModelDirectory(source));
  expect(graphs.map(({ part, files, dtype, bytes }) => [part, files, dtype, bytes])).toEqual([
    ['text_encoder', ['text_encoder/model_int8.onnx'], 'int8', 1_110_969],
    ['unet', ['unet/model_int8.onnx'], 'int8', 10_071_871],
    ['vae_decoder', ['vae_decoder/model_int8.onnx'], 'int8', 1_130_799],
    ['vae_encoder', ['vae_encoder/model_int8.onnx'], 'int8', 685_472],
    ['upscaler_x2', ['upscaler_x2/model.onnx'], 'fp32', 87_728],
  ]);
  // The README does not count the scales of INT8, about 0.3 %.
  expect(graphs[0]!.parameters / 0.46e6).toBeCloseTo(1, 2);
  expect(graphs[1]!.parameters / 9.08e6).toBeCloseTo(1, 2);
  expect(hasTimestepPerRow).toBe(true);
});

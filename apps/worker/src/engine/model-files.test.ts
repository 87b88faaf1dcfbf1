import { cp, mkdtemp, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { engineKinds } from '@darkroom/executor';
import { expect, it, onTestFinished } from 'vitest';
import { ModelFiles } from './model-files.ts';

const models = resolve(import.meta.dirname, '../../../../models');

/** Copies a model to its own directory and marks its files. */
async function openFiles(model: string) {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-files-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await cp(join(models, model), directory, { recursive: true });
  const files = new ModelFiles({ directory, id: 'copy', devices: ['cpu'] }, engineKinds);
  await files.mark();
  return { directory, files };
}

/** Replaces a file by a rename, as a careful update does. */
async function replace(file: string, change: (bytes: Buffer) => void): Promise<void> {
  const bytes = await readFile(file);
  change(bytes);
  await writeFile(`${file}.new`, bytes);
  await rename(`${file}.new`, file);
}

it.each([
  [
    'emoji-sd',
    [
      'unet/model_int8.onnx',
      'unet/model_int8.loras.onnx',
      'loras/pixels.safetensors',
      'tokenizer/vocab.json',
      'scheduler/scheduler_config.json',
      'model_index.json',
    ],
  ],
  ['emoji-writer', ['onnx/model_int8.onnx', 'tokenizer.json', 'config.json', 'generation_config.json']],
])('detects changes of each file that %s is loaded from, once, and of no other file', async (model, names) => {
  const { directory, files } = await openFiles(model);
  await writeFile(join(directory, 'README.md'), 'another');
  await writeFile(join(directory, 'weights.part'), 'on its way');
  expect([await files.check(), files.changed]).toEqual([false, []]);
  const before = files.digest;
  for (const name of names) await replace(join(directory, name), (bytes) => bytes.fill(32, bytes.length - 1));
  expect([await files.check(), await files.check(), files.changed]).toEqual([true, false, names.toSorted()]);
  expect(files.digest).toBe(before);
});

it('detects a changed file of the same size and time, a newer file with the same bytes, and a deleted one', async () => {
  const { directory, files } = await openFiles('emoji-sd');
  const weights = join(directory, 'unet/model_int8.onnx');
  await utimes(weights, 1e9, 1e9);
  await files.mark();
  await replace(weights, (bytes) => bytes.fill(7, bytes.length >> 1, (bytes.length >> 1) + 9));
  await utimes(weights, 1e9, 1e9);
  await utimes(join(directory, 'model_index.json'), 1e9, 1e9);
  await rm(join(directory, 'darkroom.json'));
  await files.check();
  expect(files.changed).toEqual(['darkroom.json', 'model_index.json', 'unet/model_int8.onnx']);
});

it('computes the same digest for the same contents regardless of file times, and another one for other contents', async () => {
  const [one, other] = await Promise.all([openFiles('emoji-sd'), openFiles('emoji-sd')]);
  expect(one.files.digest).toBe(other.files.digest);
  await replace(join(one.directory, 'darkroom.json'), (bytes) => bytes.fill(10, bytes.length - 1));
  await one.files.check();
  await one.files.mark();
  expect([one.files.changed, one.files.digest === other.files.digest]).toEqual([[], true]);
  await replace(join(one.directory, 'unet/model_int8.onnx'), (bytes) =>
    bytes.fill(7, bytes.length >> 1, (bytes.length >> 1) + 9),
  );
  await one.files.mark();
  expect(one.files.digest).not.toBe(other.files.digest);
});

/** LoRA adapters of users in a running system: any file name, and parts that the model may not support. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ended, fetchImage, submit } from '../e2e/client.ts';
import { startSystem, stopSystem, type System } from '../e2e/system.ts';

const vectors = resolve(import.meta.dirname, '../../tools/golden/vectors');
const name = 'stable-diffusion-2';
const names = { complete: 'My Style (kohya)', kohya: '水彩', peft: 'plain_v1.0' };
const directory = mkdtempSync(join(tmpdir(), 'darkroom-own-adapters-'));
let system: System;

interface Lora {
  id: string;
  name?: string;
  left_out?: string[];
}

beforeAll(async () => {
  for (const [folder, encoders] of [
    ['takes', true],
    ['leaves-out', false],
  ] as const) {
    const model = join(directory, folder);
    const recorded = join(vectors, 'loras', name);
    cpSync(join(vectors, 'pipelines', name, 'model'), model, { recursive: true });
    cpSync(join(recorded, 'model.loras.onnx'), join(model, 'unet/model.loras.onnx'));
    if (encoders) cpSync(join(recorded, 'text_encoder.model.loras.onnx'), join(model, 'text_encoder/model.loras.onnx'));
    for (const [file, called] of Object.entries(names))
      cpSync(join(recorded, `${file}.safetensors`), join(model, `loras/${called}.safetensors`));
    writeFileSync(join(model, 'loras/another kind.safetensors'), 'PK, and so on: a zip');
  }
  system = await startSystem({ parts: ['api', 'batch-former'] });
  const start = (id: string) =>
    system.start('worker', { MODEL_ID: id, MODEL_DIR: join(directory, id), NUM_THREADS: '1' });
  await Promise.all([start('takes'), start('leaves-out')]);
});
afterAll(async () => {
  await stopSystem(system);
  rmSync(directory, { recursive: true });
});

async function lorasOf(model: string): Promise<Lora[]> {
  const response = await fetch(`${system.url}/v1/models/${model}`);
  return ((await response.json()) as { loras: Lora[] }).loras;
}

/** Maps file names to adapter ids. */
function ids(loras: Lora[]): Record<string, string> {
  return Object.fromEntries(loras.map((lora) => [lora.name ?? lora.id, lora.id]));
}

async function draw(model: string, id?: string): Promise<string> {
  const loras = id === undefined ? undefined : [{ id }];
  const body = { model, prompt: 'a cat', size: '32x32', seed: 7, num_inference_steps: 2, preview: 'off', loras };
  const request = await submit(system.url, body);
  expect(await ended(system.url, request)).toBe('succeeded');
  return (await fetchImage(system.url, request, 0)).toString('base64');
}

it('lists adapters of any file name under a valid id, with the parts that the model ignores (left_out)', async () => {
  const takes = await lorasOf('takes');
  expect(ids(takes)).toEqual({
    'My Style (kohya)': expect.stringMatching(/^My-Style-kohya-[0-9a-f]{6}$/) as string,
    水彩: expect.stringMatching(/^lora-[0-9a-f]{6}$/) as string,
    'plain_v1.0': 'plain_v1.0',
  });
  expect(takes.flatMap(({ left_out: leftOut = [] }) => leftOut)).toEqual([]);
  const leavesOut = await lorasOf('leaves-out');
  expect(ids(leavesOut)).toEqual(ids(takes));
  expect(leavesOut.map((lora) => [lora.name, lora.left_out])).toEqual(
    takes.map((lora) => [lora.name, lora.name === names.complete ? ['text_encoder'] : undefined]),
  );
});

it('applies the text encoder part of a LoRA where the model supports it, beside requests without it', async () => {
  const [complete, unet] = [names.complete, names.kohya].map(
    async (called) => (await lorasOf('takes')).find((lora) => lora.name === called)!.id,
  );
  const chosen = [undefined, await complete!, await unet!];
  const [plain, full, part] = await Promise.all(chosen.map((id) => draw('takes', id)));
  expect(new Set([plain, full, part]).size).toBe(3);
  expect(await draw('takes', chosen[1])).toBe(full);
  expect(await draw('leaves-out', chosen[1])).toBe(part);
});

it('lists refused adapter files with the reason in /status', async () => {
  const status = (await (await fetch(`${system.url}/status`)).json()) as { refused_files: object[] };
  const file = 'loras/another kind.safetensors';
  const reason = expect.stringMatching(/^is no \.safetensors file/) as string;
  expect(status.refused_files).toEqual(
    expect.arrayContaining([
      { model: 'takes', file, reason },
      { model: 'leaves-out', file, reason },
    ]),
  );
  expect(status.refused_files).toHaveLength(2);
});

/** LoRA adapters of the bundled model, through each API that takes them. */
import { createFalClient } from '@fal-ai/client';
import OpenAI from 'openai';
import { expect, it } from 'vitest';
import { ended, fetchImage, poll, submit, postJson } from './client.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();
const prompt = 'a red apple on a white background';
const request = { prompt, seed: 7, num_inference_steps: 4, size: '64x64', preview: 'off' };
const loras = [
  { id: 'pixels', scale: 0.8 },
  { id: 'sunset', scale: 0.5 },
];

async function draw(body: object): Promise<{ id: string; bytes: Buffer }> {
  const id = await submit(system.url, { ...request, ...body });
  expect(await ended(system.url, id)).toBe('succeeded');
  return { id, bytes: await fetchImage(system.url, id, 0) };
}

it('LoRAs are listed, change the image, and are part of the parameters that reproduce it', async () => {
  const models = (await (await fetch(`${system.url}/v1/models`)).json()) as { data: { id: string; loras?: unknown }[] };
  expect(models.data.find(({ id }) => id === 'emoji-sd')?.loras).toEqual([
    { id: 'pixels', rank: 4 },
    { id: 'sunset', rank: 4 },
  ]);
  const plain = await draw({});
  const styled = await draw({ loras });
  expect(styled.bytes.equals(plain.bytes)).toBe(false);
  const { parameters } = await poll(system.url, styled.id);
  expect(parameters).toMatchObject({ loras });
  expect((await draw(parameters as object)).bytes.equals(styled.bytes)).toBe(true);
  // In one batch, each request gets the image that it gets alone.
  const [first, second, , last] = await Promise.all([
    draw({}),
    draw({ loras }),
    draw({ loras: [{ id: 'sunset' }] }),
    draw({}),
  ]);
  expect(second.bytes.equals(styled.bytes)).toBe(true);
  expect([first, last].every(({ bytes }) => bytes.equals(plain.bytes))).toBe(true);
});

it('prompts in the syntax of Stable Diffusion web UI have weights and name LoRAs', async () => {
  const webui = { prompt_syntax: 'webui' };
  const plain = await draw({});
  const text = 'a (red:1.4) apple on a white background';
  const images = [
    await draw(webui),
    await draw({ ...webui, prompt: text }),
    await draw({ prompt: text }),
    await draw({ loras }),
    await draw({ ...webui, prompt: `${prompt} <lora:pixels:0.8><lora:sunset:.5>` }),
  ].map(({ bytes }) => bytes.toString('base64'));
  expect(images[0]).toBe(plain.bytes.toString('base64'));
  expect(images[4]).toBe(images[3]);
  // Weights count, and in a plain prompt brackets are text.
  expect(new Set(images).size).toBe(4);
  const weighted = await draw({ ...webui, prompt: `${text} <lora:pixels:0.8>` });
  const { parameters } = await poll(system.url, weighted.id);
  expect(parameters).toMatchObject({ ...webui, prompt: text, loras: [loras[0]] });
  expect((await draw(parameters as object)).bytes.equals(weighted.bytes)).toBe(true);
});

it('the OpenAI and fal clients take LoRAs', async () => {
  const { bytes } = await draw({ loras });
  const openai = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });
  // The SDK's types do not have this field of ours.
  const { preview: _, ...body } = { ...request, model: 'emoji-sd', loras };
  const made = await openai.images.generate(body as OpenAI.Images.ImageGenerateParamsNonStreaming);
  expect(Buffer.from(made.data![0]!.b64_json!, 'base64').equals(bytes)).toBe(true);
  const fal = createFalClient({
    credentials: 'id:secret',
    proxyUrl: { url: `${system.url}/fal/proxy`, when: 'always' },
  });
  const { data } = await fal.subscribe('darkroom/emoji-sd', {
    input: {
      prompt,
      seed: 7,
      num_inference_steps: 4,
      image_size: { width: 64, height: 64 },
      loras: loras.map(({ id: path, scale }) => ({ path, scale })),
    },
  });
  const [image] = (data as { images: { url: string }[] }).images;
  expect(Buffer.from(await (await fetch(image!.url)).arrayBuffer()).equals(bytes)).toBe(true);
});

it('an unknown LoRA is a 400 that lists the available ones', async () => {
  const response = await postJson(`${system.url}/v1/predict`, { prompt, loras: [{ id: 'neon' }] });
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { message: 'loras.0.id is "neon", expected one of pixels, sunset' },
  ]);
});

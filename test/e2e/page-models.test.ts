/** The page shows only the fields that the chosen model supports, such as LoRA styles and upscaling. */
import type { ImageCard } from '@darkroom/kinds';
import { publishModel, registerWorker } from '@darkroom/store';
import type { Page } from 'playwright-core';
import { imageCard } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { useChromium, openPage } from './chromium.ts';
import { submitPrompt, downloadedFrom } from './request-card.ts';
import { useSharedSystem } from './shared-system.ts';
import { openSystem, type System } from './system.ts';

const shared = useSharedSystem();
const browser = useChromium();

const plain: ImageCard = {
  ...imageCard,
  id: 'plain',
  sizes: { multiple: 32, min: 32, max: 320, default: { width: 96, height: 96 } },
  steps: { min: 2, max: 90, default: 12 },
  schedulers: ['ddim'],
};
const versatile: ImageCard = {
  ...plain,
  id: 'versatile',
  takes: ['image', 'mask'],
  loras: [
    { id: 'pixels', rank: 4 },
    { id: 'night', rank: 8 },
  ],
  upscales: [2, 4],
};

/** Opens the page on an API without workers: requests stay queued. */
async function open(...cards: readonly ImageCard[]): Promise<{ system: System; page: Page }> {
  const system = await openSystem({ parts: ['api'] });
  for (const card of cards) await publishModel(system.store, card);
  const page = await openPage(browser(), system.url);
  await page.getByText('no worker serves it now; prompts of up to 77 tokens').waitFor();
  await page.getByLabel('Prompt', { exact: true }).fill('a fox');
  return { system, page };
}

async function newest(page: Page): Promise<{ id: string; request: object }> {
  const text = await page.evaluate<string>(`localStorage.getItem('darkroom.gallery')`);
  return (JSON.parse(text) as [{ id: string; request: object }])[0];
}

async function parametersOf({ url }: System, page: Page): Promise<object> {
  const { id } = await newest(page);
  return ((await (await fetch(`${url}/v1/predict/${id}`)).json()) as { parameters: object }).parameters;
}

it('submits LoRA styles with scales and an upscale factor, and fills them in again', async () => {
  const { system, page } = await open(versatile);
  await page.getByLabel('pixels', { exact: true }).check();
  await page.getByLabel('Scale of pixels').fill('0.5');
  await page.getByLabel('night', { exact: true }).check();
  await page.getByLabel('Upscale').selectOption('2×');
  await page.getByRole('button', { name: 'Develop' }).click();
  const card = page.getByRole('article', { name: 'a fox' });
  await card.getByText('pixels × 0.5 · night × 1 · upscaled 2×').waitFor();
  const loras = [
    { id: 'pixels', scale: 0.5 },
    { id: 'night', scale: 1 },
  ];
  expect(await parametersOf(system, page)).toMatchObject({ loras, upscale: 2 });
  await page.getByLabel('pixels', { exact: true }).uncheck();
  expect(await page.getByLabel('Scale of pixels').count()).toBe(1);
  expect(await page.getByLabel('Scale of pixels').isVisible()).toBe(false);
  await page.getByLabel('Upscale').selectOption('off');
  await card.getByRole('button', { name: 'Use settings' }).click();
  expect(await page.getByLabel('pixels', { exact: true }).isChecked()).toBe(true);
  expect(await page.getByLabel('Scale of pixels').inputValue()).toBe('0.5');
  expect(await page.getByLabel('Upscale').inputValue()).toBe('2');
});

it('shows an invalid style scale next to its field', async () => {
  const { page } = await open(versatile);
  await page.getByLabel('pixels', { exact: true }).check();
  await page.getByLabel('Scale of pixels').fill('9');
  await page.getByRole('button', { name: 'Develop' }).click();
  await page.getByRole('alert').getByText('9').waitFor();
  expect(await page.evaluate<string>('document.activeElement.id')).toBe('loras');
  expect(await page.getByRole('article').count()).toBe(0);
});

it('hides fields that the model does not support, and does not send them', async () => {
  const { system, page } = await open(plain, versatile);
  await page.getByLabel('Model').selectOption('versatile');
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose an image' }).click();
  const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';
  await (await chooser).setFiles({ name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(dot, 'base64') });
  await page.getByText('dot.png', { exact: true }).waitFor();
  await page.getByLabel('Strength').fill('0.4');
  await page.getByLabel('night', { exact: true }).check();
  await page.getByLabel('Upscale').selectOption('4×');
  const fields = [
    page.getByRole('group', { name: 'Start from an image' }),
    page.getByRole('group', { name: 'Styles' }),
    page.getByLabel('Upscale'),
  ];
  for (const field of fields) expect(await field.isVisible()).toBe(true);
  await page.getByLabel('Model').selectOption('plain');
  for (const field of fields) expect(await field.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Develop' }).click();
  await page.getByRole('article', { name: 'a fox' }).waitFor();
  const parameters = await parametersOf(system, page);
  for (const name of ['image', 'strength', 'loras', 'upscale']) expect(parameters).not.toHaveProperty(name);
  // The image is still there for a model that supports it.
  await page.getByLabel('Model').selectOption('versatile');
  await page.getByText('dot.png', { exact: true }).waitFor();
});

it('selects the first model with a worker, or the first model if there is none', async () => {
  const { system, page } = await open(plain, versatile);
  const model = page.getByLabel('Model', { exact: true });
  expect(await model.inputValue()).toBe('plain');
  const worker = { shard: 'versatile', workerId: 'w1', incarnation: 'first' };
  await registerWorker(system.store, worker, { state: 'ready', capacity: 8, info: {} });
  await expect
    .poll(async () => (await (await fetch(`${system.url}/v1/models/versatile`)).json()) as object)
    .toMatchObject({
      is_possible: true,
    });
  const later = await openPage(browser(), system.url);
  await later.getByText('prompts of up to 77 tokens').waitFor();
  expect(await later.getByLabel('Model', { exact: true }).inputValue()).toBe('versatile');
});

it('applies a style of the bundled model', async () => {
  const page = await openPage(browser(), shared.url);
  await page.getByLabel('sunset', { exact: true }).check();
  await page.getByLabel('Seed').fill('7');
  const styled = await downloadedFrom(await submitPrompt(page, 'a house on a green background', 6));
  await page.getByLabel('Scale of sunset').fill('0');
  await page.getByRole('button', { name: 'Develop' }).click();
  await expect.poll(() => page.getByRole('article').count()).toBe(2);
  const unstyled = await downloadedFrom(page.getByRole('article').first());
  expect(styled).not.toEqual(unstyled);
});

/** A picture's file that says how it was made fills the page's form, in a real Chromium. */
import { readMetadata } from '@darkroom/client';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectToChromium, openPage } from './chromium.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();
let browser: Browser;

beforeAll(async () => {
  browser = await connectToChromium();
});
afterAll(() => browser.close());

const wish = { prompt: 'a red apple on a white background', negative_prompt: 'green', size: '64x96', seed: 5, n: 2 };
const steps = { num_inference_steps: 4, guidance_scale: 2.5 };

/** The second picture of a request, as it is given out. */
async function draw(more: object): Promise<{ id: string; data: Buffer }> {
  const response = await fetch(`${system.url}/v1/predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', prefer: 'wait=60' },
    body: JSON.stringify({ model: 'emoji-sd', ...wish, ...steps, ...more }),
  });
  const { request_id: id, images } = (await response.json()) as { request_id: string; images: { url: string }[] };
  return { id, data: await bytesOf(images[1]!.url) };
}

async function bytesOf(path: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(`${system.url}${path}`)).arrayBuffer());
}

async function openReady(size?: { width: number; height: number }): Promise<Page> {
  const page = await openPage(browser, system.url, size);
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  return page;
}

/** As the system's file manager would. */
async function drop(page: Page, name: string, data: Buffer): Promise<void> {
  const dropped = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    const bytes = Uint8Array.from(atob('${data.toString('base64')}'), (character) => character.codePointAt(0));
    transfer.items.add(new File([bytes], '${name}'));
    return transfer;
  })()`);
  for (const type of ['dragover', 'drop']) await page.dispatchEvent('.maker', type, { dataTransfer: dropped });
}

function valuesIn(page: Page): Promise<string[]> {
  const labels = ['Prompt', 'Negative prompt', 'Model', 'Steps', 'Guidance', 'Width', 'Height', 'Pictures', 'Seed'];
  return Promise.all(labels.map((label) => page.getByLabel(label, { exact: true }).inputValue()));
}

const filled = [wish.prompt, wish.negative_prompt, 'emoji-sd', '4', '2.5', '64', '96', '1', '6'];

it.each(['png', 'jpeg', 'webp'])('a dropped %s fills the form, and makes the same picture again', async (format) => {
  const { id, data } = await draw({ metadata: true, output_format: format });
  expect(readMetadata(data)).toMatchObject({ prompt: wish.prompt, seed: 6 });
  const plain = await draw({ output_format: format });
  expect(await bytesOf(`/v1/predict/${id}/images/1?metadata=false`)).toEqual(plain.data);
  const page = await openReady();
  await page.getByLabel('Pictures', { exact: true }).fill('3');
  await drop(page, `apple.${format}`, data);
  await page.getByText(`Filled in from apple.${format}.`).waitFor();
  expect(await valuesIn(page)).toEqual(filled);
  await page.getByLabel('Say in the file how it was made').check();
  await page.getByRole('button', { name: 'Develop' }).click();
  await page.getByRole('article', { name: wish.prompt }).locator('img.final').waitFor();
  const stored = await page.evaluate<string>(`localStorage.getItem('darkroom.gallery')`);
  const [{ id: again }] = JSON.parse(stored) as [{ id: string }];
  // The page makes png files.
  const png = await draw({ metadata: true });
  expect(await bytesOf(`/v1/predict/${again}/images/0`)).toEqual(png.data);
});

it('on a phone a picture is chosen by a button; what says nothing changes nothing', async () => {
  const { data } = await draw({ metadata: true });
  const { data: silent } = await draw({});
  const page = await openReady({ width: 390, height: 844 });
  const choose = async (name: string, buffer: Buffer): Promise<void> => {
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Read a picture' }).click();
    await (await chooser).setFiles({ name, mimeType: 'image/png', buffer });
  };
  await choose('apple.png', data);
  await page.getByText('Filled in from apple.png.').waitFor();
  expect(await valuesIn(page)).toEqual(filled);
  for (const buffer of [silent, Buffer.from('no picture'), Buffer.alloc(0)]) {
    await choose('other.png', buffer);
    await page.getByText('other.png does not say how it was made.').waitFor();
    await choose('apple.png', data);
    await page.getByText('Filled in from apple.png.').waitFor();
  }
  expect(await valuesIn(page)).toEqual(filled);
});

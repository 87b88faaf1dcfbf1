/** The page fills in its form from generation parameters in image files, in a real Chromium. */
import { readMetadata } from '@darkroom/client';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { useChromium, openPage } from './chromium.ts';
import { useSharedSystem } from './shared-system.ts';
import { postJson } from './client.ts';

const system = useSharedSystem();
const browser = useChromium();

const request = { prompt: 'a red apple on a white background', negative_prompt: 'green', size: '64x96', seed: 5, n: 2 };
const steps = { num_inference_steps: 4, guidance_scale: 2.5 };

/** Draws two images. Returns the request id and the file of the second. */
async function draw(more: object): Promise<{ id: string; data: Buffer }> {
  const response = await postJson(
    `${system.url}/v1/predict`,
    { model: 'emoji-sd', ...request, ...steps, ...more },
    { prefer: 'wait=60' },
  );
  const { request_id: id, images } = (await response.json()) as { request_id: string; images: { url: string }[] };
  return { id, data: await bytesOf(images[1]!.url) };
}

async function bytesOf(path: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(`${system.url}${path}`)).arrayBuffer());
}

async function openReady(size?: { width: number; height: number }): Promise<Page> {
  const page = await openPage(browser(), system.url, size);
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  return page;
}

/** Drops a file, as from the system's file manager. */
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
  const labels = ['Prompt', 'Negative prompt', 'Model', 'Steps', 'Guidance', 'Width', 'Height', 'Images', 'Seed'];
  return Promise.all(labels.map((label) => page.getByLabel(label, { exact: true }).inputValue()));
}

const filled = [request.prompt, request.negative_prompt, 'emoji-sd', '4', '2.5', '64', '96', '1', '6'];

it.each(['png', 'jpeg', 'webp'])(
  'a dropped %s with metadata fills in the form, which makes the same image',
  async (format) => {
    const { id, data } = await draw({ metadata: true, output_format: format });
    expect(readMetadata(data)).toMatchObject({ prompt: request.prompt, seed: 6 });
    const plain = await draw({ output_format: format });
    expect(await bytesOf(`/v1/predict/${id}/images/1?metadata=false`)).toEqual(plain.data);
    const page = await openReady();
    await page.getByLabel('Images', { exact: true }).fill('3');
    await drop(page, `apple.${format}`, data);
    await page.getByText(`Filled in from apple.${format}.`).waitFor();
    expect(await valuesIn(page)).toEqual(filled);
    await page.getByLabel('Save settings in the file').check();
    await page.getByRole('button', { name: 'Develop' }).click();
    await page.getByRole('article', { name: request.prompt }).locator('img.final').waitFor();
    const stored = await page.evaluate<string>(`localStorage.getItem('darkroom.gallery')`);
    const [{ id: again }] = JSON.parse(stored) as [{ id: string }];
    // The page requests PNG files.
    const png = await draw({ metadata: true });
    expect(await bytesOf(`/v1/predict/${again}/images/0`)).toEqual(png.data);
  },
);

it('phone: a chosen file with metadata fills in the form, a file without changes nothing', async () => {
  const { data } = await draw({ metadata: true });
  const { data: silent } = await draw({});
  const page = await openReady({ width: 390, height: 844 });
  const choose = async (name: string, buffer: Buffer): Promise<void> => {
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: 'Load settings from an image' }).click();
    await (await chooser).setFiles({ name, mimeType: 'image/png', buffer });
  };
  await choose('apple.png', data);
  await page.getByText('Filled in from apple.png.').waitFor();
  expect(await valuesIn(page)).toEqual(filled);
  for (const buffer of [silent, Buffer.from('no image'), Buffer.alloc(0)]) {
    await choose('other.png', buffer);
    await page.getByText('other.png contains no settings.').waitFor();
    await choose('apple.png', data);
    await page.getByText('Filled in from apple.png.').waitFor();
  }
  expect(await valuesIn(page)).toEqual(filled);
});

/**
 * Image to image on the page in a real Chromium: choosing, dropping, masking by mouse, touch and keyboard, comparing.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeGrey } from '@darkroom/imaging';
import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { useChromium, openPage, type OpenPageOptions } from './chromium.ts';
import { submitPrompt, cardOf, developed, downloadedFrom } from './request-card.ts';
import { useSharedSystem } from './shared-system.ts';
import { postJson } from './client.ts';

const system = useSharedSystem();
const browser = useChromium();
/** A PNG of 128 × 128 pixels. */
let apple: Buffer;

beforeAll(async () => {
  const body = { model: 'emoji-sd', prompt: 'a red apple on a white background', seed: 5, num_inference_steps: 10 };
  const response = await postJson(`${system.url}/v1/predict`, body, { prefer: 'wait=60' });
  const { images } = (await response.json()) as { images: { url: string }[] };
  apple = await bytesAt(images[0]!.url);
});

async function bytesAt(path: string): Promise<Buffer> {
  const response = await fetch(`${system.url}${path}`);
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

async function open(options: OpenPageOptions = {}): Promise<Page> {
  const page = await openPage(browser(), system.url, {
    ...options,
    leave: async (page) => {
      for (const { id } of await storedEntries(page))
        await fetch(`${system.url}/v1/predict/${id}`, { method: 'DELETE' });
    },
  });
  await page.getByRole('button', { name: 'Choose an image' }).waitFor();
  return page;
}

async function storedEntries(page: Page): Promise<{ id: string; request: Record<string, unknown> }[]> {
  return JSON.parse(await page.evaluate<string>(`localStorage.getItem('darkroom.gallery') ?? '[]'`)) as never;
}

async function choose(page: Page, buffer = apple, name = 'apple.png'): Promise<void> {
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: /^(?:Choose an image|Replace)$/ }).click();
  await (await chooser).setFiles({ name, mimeType: 'image/png', buffer });
}

const field = (page: Page): Locator => page.getByRole('group', { name: 'Start from an image' });
const canvas = (page: Page): Locator => page.getByRole('application', { name: 'The mask over the image' });
const painted = async (page: Page): Promise<number> =>
  Number.parseFloat((await page.getByText(/will be redrawn$/).textContent()) ?? '');

async function openPainter(page: Page): Promise<{ x: number; y: number; width: number; height: number }> {
  await page.getByRole('button', { name: /^(?:Paint a mask|Change the mask)$/ }).click();
  await canvas(page).waitFor();
  return (await canvas(page).boundingBox())!;
}

/** Paints a stroke over the left half, from top to bottom, with the mouse. */
async function paintLeftHalf(page: Page): Promise<void> {
  const { x, y, width, height } = await openPainter(page);
  await page.getByLabel('Size', { exact: true }).fill('50');
  await page.mouse.move(x + width / 4, y + 1);
  await page.mouse.down();
  await page.mouse.move(x + width / 4, y + height - 1, { steps: 5 });
  await page.mouse.up();
}

/** Returns the shares of white pixels in the left and the right half. */
async function halvesOf(mask: Buffer): Promise<[number, number]> {
  const { data, width, height } = await decodeGrey(mask);
  const counts: [number, number] = [0, 0];
  for (const [at, grey] of data.entries()) if (grey >= 128) counts[at % width < width / 2 ? 0 : 1]++;
  return counts.map((count) => count / ((width * height) / 2)) as [number, number];
}

describe('an input image', () => {
  it('is chosen, sent, and compared with the result; the browser stores none of its bytes', async () => {
    const page = await open();
    await choose(page);
    await field(page).getByText('128 × 128, all of it is redrawn').waitFor();
    await page.getByLabel('Strength').fill('0.5');
    const card = await submitPrompt(page, 'a strawberry on a white background', 8);
    const wipe = card.getByRole('slider', { name: 'Before and after of the image' });
    await wipe.waitFor();
    await wipe.press('ArrowRight');
    expect(await wipe.getAttribute('aria-valuetext')).toBe('51 % of the input image');
    await wipe.press('Home');
    expect(await card.locator('.tile').getAttribute('style')).toContain('--wipe: 0%');
    const [{ id, request }] = (await storedEntries(page)) as [{ id: string; request: Record<string, unknown> }];
    expect(request).toMatchObject({ image: `/v1/predict/${id}/inputs/image`, strength: 0.5 });
    expect(JSON.stringify(request).length).toBeLessThan(600);
    await card.getByText('from an image · strength 0.5').waitFor();
  });

  it('is dropped on its field only, and sets width and height by its aspect ratio', async () => {
    const page = await open();
    await page.getByLabel('Prompt', { exact: true }).fill('a strawberry');
    await drop(page, 'apple.png', apple);
    await field(page).getByText('apple.png').waitFor();
    expect(await page.getByText('contains no settings').count()).toBe(0);
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('a strawberry');
    await drop(page, 'wide.png', await drawnBy(page, 600, 300));
    await field(page).getByText('600 × 300').waitFor();
    expect([await page.getByLabel('Width').inputValue(), await page.getByLabel('Height').inputValue()]).toEqual([
      '192',
      '96',
    ]);
    await field(page).getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Choose an image' }).and(page.locator(':focus')).waitFor();
  });

  it('is scaled down in the browser when it is larger than any model draws', async () => {
    const page = await open();
    await choose(page, await drawnBy(page, 4096, 1024), 'large.png');
    await field(page).getByText('2048 × 512').waitFor();
    expect(await page.getByLabel('Width').inputValue()).toBe('256');
  });

  it('a file that is not an image shows an error and keeps the current image', async () => {
    const page = await open();
    await choose(page);
    await field(page).getByText('128 × 128').waitFor();
    await choose(page, Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'drawing.svg');
    await field(page).getByText('drawing.svg is not an image that this browser can read.').waitFor();
    expect(await field(page).getByText('apple.png', { exact: true }).isVisible()).toBe(true);
  });

  it("shows the server's error at the field for a format that only the browser decodes", async () => {
    const page = await open();
    const gif = 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7';
    await choose(page, Buffer.from(gif, 'base64'), 'dot.gif');
    await field(page).getByText('1 × 1').waitFor();
    await page.getByLabel('Prompt', { exact: true }).fill('a fox');
    await page.getByRole('button', { name: 'Develop' }).click();
    await page
      .getByRole('alert')
      .getByText(/^Start from an image is .*expected/)
      .waitFor();
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('image');
    expect(await storedEntries(page)).toEqual([]);
  });

  it('is filled in again by "Use settings" with its mask, and makes the same image', async () => {
    const page = await open();
    await choose(page);
    await paintLeftHalf(page);
    await page.getByRole('button', { name: 'Done' }).click();
    const first = await submitPrompt(page, 'a green apple on a white background', 6);
    const bytes = await downloadedFrom(first);
    await field(page).getByRole('button', { name: 'Remove' }).click();
    await first.getByRole('button', { name: 'Use settings' }).click();
    await field(page).getByText('the painted area is redrawn').waitFor();
    await page.getByRole('button', { name: 'Develop' }).click();
    await expect.poll(() => page.getByRole('article').count()).toBe(2);
    expect(await downloadedFrom(page.getByRole('article').first())).toEqual(bytes);
    // After a reload the browser has no image; the server keeps it as long as it stores the prompt.
    await page.reload();
    const [newest] = await storedEntries(page);
    await page.getByRole('article').first().getByRole('slider').waitFor();
    await system.store.redis.del(system.store.keysOf('emoji-sd').inputs(newest!.id));
    await page.reload();
    await page.getByRole('article').first().getByRole('button', { name: 'Use settings' }).click();
    await field(page).getByText('The input image is no longer stored.').waitFor();
    expect(await page.getByRole('slider').count()).toBe(1);
    expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe('a green apple on a white background');
  });

  it('is fetched from the server after a reload', async () => {
    const page = await open();
    await choose(page);
    const card = await submitPrompt(page, 'a fox', 200, 4);
    await card.waitFor();
    await page.reload();
    const again = cardOf(page, 'a fox');
    await again.getByRole('button', { name: 'Use settings' }).click();
    await field(page).getByText('128 × 128').waitFor();
    expect(await page.getByLabel('Steps', { exact: true }).inputValue()).toBe('200');
  });
});

describe('a mask', () => {
  it('is painted with the mouse, and its painted part is white in the mask that is sent', async () => {
    const page = await open();
    await choose(page);
    await paintLeftHalf(page);
    await expect.poll(() => painted(page)).toBeGreaterThan(45);
    await page.getByRole('button', { name: 'Done' }).click();
    await field(page).getByText('the painted area is redrawn').waitFor();
    expect(await page.getByLabel('Strength').getAttribute('placeholder')).toBe('1');
    await submitPrompt(page, 'a lemon', 200, 4);
    const [newest] = await storedEntries(page);
    const [left, right] = await halvesOf(await bytesAt(`/v1/predict/${newest!.id}/inputs/mask`));
    expect(left).toBeGreaterThan(0.95);
    expect(right).toBeLessThan(0.02);
  });

  it('can be undone, redone, inverted, erased and cleared', async () => {
    const page = await open();
    await choose(page);
    await paintLeftHalf(page);
    await expect.poll(() => painted(page)).toBeGreaterThan(45);
    const half = await painted(page);
    const button = (name: string): Locator => page.getByRole('button', { name, exact: true });
    await page.keyboard.press('Control+z');
    expect(await painted(page)).toBe(0);
    expect(await button('Undo').getAttribute('aria-disabled')).toBe('true');
    await page.keyboard.press('Control+Shift+Z');
    expect(await painted(page)).toBe(half);
    await button('Invert').click();
    expect(await painted(page)).toBeCloseTo(100 - half, -0.5);
    await button('Invert').click();
    expect(await painted(page)).toBe(half);
    await page.getByLabel('Erase').check();
    const { x, y, width, height } = (await canvas(page).boundingBox())!;
    await page.mouse.click(x + width / 4, y + height / 2);
    expect(await painted(page)).toBeLessThan(half - 10);
    await button('Undo').click();
    expect(await painted(page)).toBe(half);
    await button('Clear').click();
    expect(await painted(page)).toBe(0);
    await button('Done').click();
    await field(page).getByText('all of it is redrawn').waitFor();
  });

  it('is painted with the keyboard alone, with brackets for the brush size', async () => {
    const page = await open();
    await choose(page);
    await page.getByRole('button', { name: 'Paint a mask' }).focus();
    await page.keyboard.press('Enter');
    await canvas(page).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Space');
    const dot = await painted(page);
    expect(dot).toBeGreaterThan(0);
    for (let count = 0; count < 6; count++) await page.keyboard.press('Shift+ArrowRight');
    const line = await painted(page);
    expect(line).toBeGreaterThan(dot);
    for (let count = 0; count < 4; count++) await page.keyboard.press(']');
    await page.keyboard.press('Space');
    const large = await painted(page);
    expect(large).toBeGreaterThan(line + 3);
    await page.keyboard.press('Control+z');
    for (let count = 0; count < 9; count++) await page.keyboard.press('[');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Space');
    expect(await painted(page)).toBeLessThan(large);
    await page.keyboard.press('Escape');
    await field(page).getByText('the painted area is redrawn').waitFor();
    await page.getByRole('button', { name: 'Change the mask' }).and(page.locator(':focus')).waitFor();
  });

  it('is painted by touch on a phone without scrolling the page', async () => {
    const page = await open({ width: 360, height: 740 });
    await choose(page);
    const { x, y, width, height } = await openPainter(page);
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(360);
    const done = (await page.getByRole('button', { name: 'Done' }).boundingBox())!;
    expect(done.y + done.height).toBeLessThanOrEqual(740);
    const scrolled = await page.evaluate<number>('scrollY');
    const session = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', share?: number) =>
      session.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: share === undefined ? [] : [{ x: x + width / 2, y: y + height * share }],
      });
    await touch('touchStart', 0.1);
    for (const share of [0.3, 0.5, 0.7, 0.9]) await touch('touchMove', share);
    await touch('touchEnd');
    await expect.poll(() => painted(page)).toBeGreaterThan(9);
    expect(await page.evaluate<number>('scrollY')).toBe(scrolled);
    await page.getByRole('button', { name: 'Undo' }).click();
    expect(await painted(page)).toBe(0);
  });
});

it('the curl command of an inpainting request names its files and makes the same image', async () => {
  const page = await open();
  await choose(page);
  await paintLeftHalf(page);
  await page.getByRole('button', { name: 'Done' }).click();
  const card = await submitPrompt(page, '@a "pear" on a white background', 6);
  const bytes = await downloadedFrom(card);
  await card.getByRole('button', { name: 'Copy as curl' }).click();
  await card.getByRole('button', { name: 'Copied' }).waitFor();
  const line = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(line).toContain('-F image=@image.png -F mask=@mask.png');
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-curl-'));
  await writeFile(join(folder, 'image.png'), apple);
  await writeFile(join(folder, 'mask.png'), await maskOf(page));
  const options = { cwd: folder };
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-c', line.replace('curl', 'curl -H "prefer: wait=60"')],
    options,
  );
  const { images } = JSON.parse(stdout) as { images: { url: string }[] };
  expect(await bytesAt(images[0]!.url)).toEqual(bytes);
  await developed(card);
});

/** Returns the stored mask, which the server did not have to resize. */
async function maskOf(page: Page): Promise<Buffer> {
  const [newest] = await storedEntries(page);
  return bytesAt(`/v1/predict/${newest!.id}/inputs/mask`);
}

/** Drops a file, as from the system's file manager. */
async function drop(page: Page, name: string, data: Buffer): Promise<void> {
  const dropped = await page.evaluateHandle(`{
    const transfer = new DataTransfer();
    const bytes = Uint8Array.from(atob('${data.toString('base64')}'), (character) => character.codePointAt(0));
    transfer.items.add(new File([bytes], '${name}'));
    transfer;
  }`);
  for (const type of ['dragover', 'drop']) await page.dispatchEvent('#image', type, { dataTransfer: dropped });
}

/** Returns a PNG of one colour, made by the browser. */
async function drawnBy(page: Page, width: number, height: number): Promise<Buffer> {
  const url = await page.evaluate<string>(`{
    const canvas = Object.assign(document.createElement('canvas'), { width: ${width}, height: ${height} });
    const context = canvas.getContext('2d');
    context.fillStyle = 'teal';
    context.fillRect(0, 0, ${width}, ${height});
    canvas.toDataURL();
  }`);
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
}

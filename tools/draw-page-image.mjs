// Draws docs/images/page.png, the README's screenshot of the page, from a system that `npm start` runs:
// node tools/draw-page-image.mjs [url]
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import sharp from 'sharp';
import { findOrInstallChromium } from './start/chromium-install.mjs';

const url = process.argv[2] ?? 'http://127.0.0.1:8080';
const file = join(import.meta.dirname, '../docs/images/page.png');
const finished = [
  ['a red apple on a white background', '20', '1', '7'],
  ['a penguin on a blue background', '20', '4', '3'],
  ['a fox on a green background', '20', '1', '11'],
];
const developing = ['a cat face on a purple background', '200', '1', '5'];

const browser = await chromium.launch({ executablePath: await findOrInstallChromium(), args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'dark' });
  await page.goto(`${url}/client.html`);
  await page.locator('#model:enabled').waitFor();
  const more = page.locator('#more > summary');
  await more.click();
  for (const request of finished) await submit(page, request);
  await page
    .locator('.card[data-status=succeeded]')
    .nth(finished.length - 1)
    .waitFor();
  await submit(page, developing);
  await more.click();
  // Late enough for the preview to show the image.
  await page.getByText(/^Step 1[2-9]\d of 200$/).waitFor();
  await sharp(await page.screenshot())
    .png({ palette: true })
    .toFile(file);
} finally {
  await browser.close();
}
console.log(file);

async function submit(page, [prompt, steps, n, seed]) {
  for (const [field, value] of Object.entries({ prompt, num_inference_steps: steps, n, seed }))
    await page.locator(`#${field}`).fill(value);
  await page.getByRole('button', { name: 'Develop' }).click();
  await page.getByRole('article', { name: prompt }).waitFor();
}

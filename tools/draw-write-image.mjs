// Draws docs/images/write.png, the README's screenshot of the Write view, from a system that `npm start` runs:
// node tools/draw-write-image.mjs [url]
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import sharp from 'sharp';
import { findOrInstallChromium } from './start/chromium-install.mjs';

const url = process.argv[2] ?? 'http://127.0.0.1:8080';
const file = join(import.meta.dirname, '../docs/images/write.png');
const [drawn, developing] = ['an animal from africa on orange', 'I feel stormy today'];
/**
 * Attempts to catch a half-written state: an answer takes less than 0.1 s, and close states are merged into one event.
 */
const tries = 50;

const browser = await chromium.launch({ executablePath: await findOrInstallChromium(), args: ['--no-sandbox'] });
try {
  const page = await browser.newPage({ viewport: { width: 1000, height: 890 }, colorScheme: 'dark' });
  await page.goto(`${url}/client.html#write`);
  await page.locator('#writers').waitFor();
  const answer = await send(page, drawn);
  await answer.getByRole('button', { name: 'Develop this' }).click();
  await answer.getByText(/^Developed in/).waitFor();
  await page.getByRole('radio', { name: /diffusion/ }).check();
  await holdInTheMiddle(page);
  const turn = await send(page, developing);
  await turn.locator('.mask').first().waitFor();
  await sharp(await page.screenshot())
    .png({ palette: true })
    .toFile(file);
} finally {
  await browser.close();
}
console.log(file);

async function send(page, message) {
  await page.locator('#wish').fill(message);
  await page.locator('#wish').press('Enter');
  return page.getByRole('article', { name: message });
}

/** Cuts the next answer's event stream where about half of its words are known. */
async function holdInTheMiddle(page) {
  let isHeld = false;
  await page.route(/predict\/emoji-writer-diffusion-[^/]+$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), status: 'running' } });
  });
  await page.route('**/events', async (route) => {
    if (isHeld) return;
    isHeld = true;
    const { response, events, at } = await halfWritten(route);
    await route.fulfill({ response, body: `${events.slice(0, at + 1).join('\n\n')}\n\n` });
  });
}

async function halfWritten(route) {
  const { parameters } = await (
    await fetch(
      route
        .request()
        .url()
        .replace(/\/events$/, ''),
    )
  ).json();
  for (let count = 0; count < tries; count++) {
    const response = await route.fetch({ url: count === 0 ? route.request().url() : await submitAgain(parameters) });
    const events = (await response.text()).split('\n\n');
    const at = events.findIndex((event) => /"text":"[^"]*\w░[^"]*░[^"]*\w"/.test(event));
    if (at >= 0) return { response, events, at };
  }
  throw new Error(`${tries} answers had no state with some words known and some masked`);
}

async function submitAgain(parameters) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/predict`, { method: 'POST', headers, body: JSON.stringify(parameters) });
  const { urls } = await response.json();
  return `${url}${urls.events}`;
}

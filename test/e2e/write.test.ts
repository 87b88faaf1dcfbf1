/** The page's Write view in a real Chromium, with the writers that are in the box. */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectToChromium } from './chromium.ts';
import { useSharedSystem } from './shared-system.ts';
import { answerOf, openWrite, send, turnOf } from './write-view.ts';

const system = useSharedSystem();
let browser: Browser;
const sweet = 'something sweet for a birthday party';
const isPrompt = /^an? .+ on an? .*background$/;

beforeAll(async () => {
  browser = await connectToChromium();
});
afterAll(() => browser.close());

async function written(turn: Locator): Promise<string> {
  await turn.getByRole('button', { name: 'Develop this' }).waitFor();
  return (await answerOf(turn).textContent()) ?? '';
}

/** Of the newest request, what the page asked for. */
function bodiesAsked(page: Page): Record<string, unknown>[] {
  const bodies: Record<string, unknown>[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') bodies.push(request.postDataJSON() as Record<string, unknown>);
  });
  return bodies;
}

it('makes a prompt of a wish, changes it, and develops it in the same page', async () => {
  const page = await openWrite(browser, system.url);
  const bodies = bodiesAsked(page);
  const first = await written(await send(page, sweet));
  expect(first).toMatch(isPrompt);
  const turn = await send(page, 'make it blue');
  const second = await written(turn);
  expect(second).toContain('blue background');
  expect(bodies[1]).toMatchObject({
    model: 'emoji-writer',
    messages: [
      { role: 'user', content: sweet },
      { role: 'assistant', content: first },
      { role: 'user', content: 'make it blue' },
    ],
  });
  await turn.getByRole('button', { name: 'Develop this' }).click();
  await turn.getByText(/^Developed in/).waitFor();
  expect(bodies[2]).toMatchObject({ model: 'emoji-sd', prompt: second });
  expect(await turn.getByRole('img', { name: second }).count()).toBe(1);
  await page.reload();
  await turnOf(page, 'make it blue')
    .getByText(/^Developed in/)
    .waitFor();
  // It is a picture like any other.
  await page.getByRole('link', { name: 'Picture', exact: true }).click();
  await page
    .getByRole('article', { name: second })
    .getByRole('link', { name: /^Download/ })
    .waitFor();
});

it('switches to the model that writes all words at once, and remembers it', async () => {
  const page = await openWrite(browser, system.url);
  await page.getByRole('radio', { name: /diffusion/ }).check();
  const turn = await send(page, sweet);
  expect(await written(turn)).toMatch(isPrompt);
  await turn.getByText(/tokens with \d calls? of the model in .* · emoji-writer-diffusion · seed \d+$/).waitFor();
  await page.reload();
  await expect.poll(() => page.getByRole('radio', { name: /diffusion/ }).isChecked()).toBe(true);
  // The writers and the caller; no model of pictures.
  expect(await page.getByRole('radio').count()).toBe(3);
});

it('leaves out the oldest turns of a conversation that is longer than the model reads', async () => {
  const page = await openWrite(browser, system.url);
  await written(await send(page, `a dog, ${'very '.repeat(150)}big`));
  const turn = await send(page, `a cat, ${'very '.repeat(150)}small`);
  await written(turn);
  expect(await turn.locator('[data-part=status]').textContent()).toMatch(
    /without the first turn, for which the model has no room$/,
  );
});

it('says what the server refuses', async () => {
  const page = await openWrite(browser, system.url);
  const turn = await send(page, 'very '.repeat(400));
  await turn.getByRole('button', { name: 'Try again' }).waitFor();
  expect(await turn.locator('[data-part=status]').textContent()).toMatch(
    /^Messages have \d+ tokens, expected at most 255/,
  );
  expect(await turn.getByRole('button', { name: 'Develop this' }).count()).toBe(0);
});

it('writes a prompt for the picture view, of a wish or of none, and another one the next time', async () => {
  const page = await openWrite(browser, system.url);
  const bodies = bodiesAsked(page);
  await page.getByRole('link', { name: 'Picture', exact: true }).click();
  const prompt = page.getByLabel('Prompt', { exact: true });
  const button = page.getByRole('button', { name: 'Write me one' });
  await button.click();
  await expect.poll(() => prompt.inputValue()).toMatch(/background$/);
  await prompt.fill(sweet);
  for (let time = 0; time < 2; time++) {
    await button.click();
    await expect.poll(() => prompt.inputValue()).toMatch(isPrompt);
    await button.waitFor();
  }
  const wishes = bodies.map(({ messages }) => (messages as { content: string }[])[0]!.content);
  expect(wishes).toEqual(['surprise me', sweet, sweet]);
});

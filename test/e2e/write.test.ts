/** The page's Write view in a real Chromium with the bundled text models. */
import type { Locator, Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { useChromium } from './chromium.ts';
import { useSharedSystem } from './shared-system.ts';
import { answerOf, openWrite, send, turnOf } from './write-view.ts';

const system = useSharedSystem();
const browser = useChromium();
const sweet = 'something sweet for a birthday party';
const isPrompt = /^an? .+ on an? .*background$/;

async function written(turn: Locator): Promise<string> {
  await turn.getByRole('button', { name: 'Develop this' }).waitFor();
  return (await answerOf(turn).textContent()) ?? '';
}

/** Collects the bodies of the page's POST requests. */
function collectBodies(page: Page): Record<string, unknown>[] {
  const bodies: Record<string, unknown>[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') bodies.push(request.postDataJSON() as Record<string, unknown>);
  });
  return bodies;
}

it('writes a prompt, changes it in a second turn, and draws it in the same view', async () => {
  const page = await openWrite(browser(), system.url);
  const bodies = collectBodies(page);
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
  // The gallery of the Image view has it too.
  await page.getByRole('link', { name: 'Image', exact: true }).click();
  await page
    .getByRole('article', { name: second })
    .getByRole('link', { name: /^Download/ })
    .waitFor();
});

it('"Develop this" takes no styles from the Image view', async () => {
  const page = await openWrite(browser(), system.url);
  const bodies = collectBodies(page);
  await page.getByRole('link', { name: 'Image', exact: true }).click();
  await page.getByLabel('sunset', { exact: true }).check();
  await page.getByRole('link', { name: 'Write', exact: true }).click();
  const turn = await send(page, sweet);
  await turn.getByRole('button', { name: 'Develop this' }).click();
  await turn.getByText(/^Developed in/).waitFor();
  expect(bodies.at(-1)).toMatchObject({ model: 'emoji-sd' });
  expect(bodies.at(-1)).not.toHaveProperty('loras');
});

it('switches to the diffusion model and remembers the choice', async () => {
  const page = await openWrite(browser(), system.url);
  await page.getByRole('radio', { name: /diffusion/ }).check();
  const turn = await send(page, sweet);
  expect(await written(turn)).toMatch(isPrompt);
  await turn.getByText(/tokens with \d model calls? in .* · emoji-writer-diffusion · seed \d+$/).waitFor();
  await page.reload();
  await expect.poll(() => page.getByRole('radio', { name: /diffusion/ }).isChecked()).toBe(true);
  // Three text models; image models are not offered.
  expect(await page.getByRole('radio').count()).toBe(3);
});

it('leaves out the oldest turns of a conversation that exceeds the context length', async () => {
  const page = await openWrite(browser(), system.url);
  await written(await send(page, `a dog, ${'very '.repeat(150)}big`));
  const turn = await send(page, `a cat, ${'very '.repeat(150)}small`);
  await written(turn);
  expect(await turn.locator('[data-part=status]').textContent()).toMatch(
    /without the first turn: too long for the model$/,
  );
});

it("shows the server's error for a message that is too long", async () => {
  const page = await openWrite(browser(), system.url);
  const turn = await send(page, 'very '.repeat(400));
  await turn.getByRole('button', { name: 'Try again' }).waitFor();
  expect(await turn.locator('[data-part=status]').textContent()).toMatch(
    /^Messages have \d+ tokens, expected at most 255/,
  );
  expect(await turn.getByRole('button', { name: 'Develop this' }).count()).toBe(0);
});

it('"Write me one" fills in the image prompt, from a text or from nothing, differently each time', async () => {
  const page = await openWrite(browser(), system.url);
  const bodies = collectBodies(page);
  await page.getByRole('link', { name: 'Image', exact: true }).click();
  const prompt = page.getByLabel('Prompt', { exact: true });
  const button = page.getByRole('button', { name: 'Write a prompt' });
  await button.click();
  await expect.poll(() => prompt.inputValue()).toMatch(/background$/);
  await prompt.fill(sweet);
  for (let time = 0; time < 2; time++) {
    await button.click();
    await expect.poll(() => prompt.inputValue()).toMatch(isPrompt);
    await button.waitFor();
  }
  const userTexts = bodies.map(({ messages }) => (messages as { content: string }[])[0]!.content);
  expect(userTexts).toEqual(['surprise me', sweet, sweet]);
});

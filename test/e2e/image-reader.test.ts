/** The embedded model that describes images closes the circle: wish → prompt → image → description. */
import { createClient } from '@darkroom/client';
import OpenAI from 'openai';
import { expect, it } from 'vitest';
import { openPage, useChromium } from './chromium.ts';
import { imageReader, useSharedSystem, writer } from './shared-system.ts';

const system = useSharedSystem();
const browser = useChromium();
const client = createClient({ baseUrl: system.url });

/** Returns thing and color: a prompt without a size or gradient leaves both to emoji-sd, and the reader sees them. */
const thingAndColor = (text: string) => text.replaceAll(/\b(?:an?|big|small|gradient) /g, '');

async function draw(prompt: string, seed: number): Promise<string> {
  const { request_id: id } = await client.submit({ model: 'emoji-sd', prompt, seed, num_inference_steps: 20 });
  expect(await client.wait(id)).toMatchObject({ status: 'succeeded' });
  return `/v1/predict/${id}/images/0`;
}

async function ask(image: string, prompt: string): Promise<string> {
  const { request_id: id } = await client.submit({ model: imageReader, prompt, image });
  const { status, texts } = await client.wait(id);
  expect(status).toBe('succeeded');
  return texts?.[0]?.text ?? '';
}

it('describes what emoji-sd drew by prompts', async () => {
  const prompts = [
    'a red apple on a white background',
    'a fox on a green background',
    'a guitar on an orange background',
    'a rocket on a black background',
    'a birthday cake on a pink background',
    'an octopus on a blue background',
  ];
  const described = await Promise.all(
    prompts.map(async (prompt, seed) => ask(await draw(prompt, seed), 'Describe the image.')),
  );
  expect(described.map(thingAndColor)).toEqual(prompts.map(thingAndColor));
});

it('answers what it is, which color, and whether it is an animal', async () => {
  const fox = await draw('a fox on a green background', 3);
  expect(await ask(fox, 'What is it?')).toBe('a fox');
  expect(await ask(fox, 'Which colour is the background?')).toBe('green');
  expect(await ask(fox, 'Is it an animal?')).toBe('yes');
  expect(await ask(await draw('a rocket on a black background', 3), 'Is it an animal?')).toBe('no');
});

it('describes what emoji-writer asked emoji-sd for', async () => {
  const messages = [{ role: 'user', content: 'something sweet for a birthday party' }];
  const { request_id: id } = await client.submit({ model: writer, messages });
  const { texts } = await client.wait(id);
  const prompt = texts?.[0]?.text ?? '';
  const described = await ask(await draw(prompt, 11), 'What do you see?');
  expect(thingAndColor(described)).toBe(thingAndColor(prompt));
});

it('answers OpenAI clients about an image as a data URL', async () => {
  const image = await fetch(`${system.url}${await draw('a fox on a green background', 3)}`);
  const data = Buffer.from(await image.arrayBuffer()).toString('base64');
  const openai = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });
  const answer = await openai.chat.completions.create({
    model: imageReader,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
        ],
      },
    ],
  });
  expect(answer.choices[0]!.message.content).toBe('a fox');
});

it('describes an image on the page', async () => {
  const page = await openPage(browser(), system.url);
  await page.getByLabel('Prompt', { exact: true }).fill('a fox on a green background');
  await page.getByRole('button', { name: 'Develop' }).click();
  const card = page.getByRole('article', { name: 'a fox on a green background' });
  await card.getByRole('button', { name: 'What is this?' }).click();
  const line = card.getByRole('listitem').filter({ hasNotText: 'Looking…' });
  expect(thingAndColor(await line.innerText())).toBe('fox on green background');
});

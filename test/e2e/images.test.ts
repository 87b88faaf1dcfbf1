/** The bundled image model on the real system: each result depends on its request only, not on the batch. */
import sharp from 'sharp';
import { expect, it } from 'vitest';
import { ended, make, fetchImage, poll, type PredictBody, type ServerEvent, stream, submit } from './client.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();

const things = ['a cat face', 'a red apple', 'a rocket', 'pizza', 'a penguin', 'a guitar', 'a star', 'a panda'];
const schedulers = [
  'ddim',
  'pndm',
  'euler',
  'euler_ancestral',
  'dpmpp_2m',
  'dpmpp_2m_karras',
  'dpmpp_2m_sde',
  'dpmpp_2m_sde_karras',
  'unipc',
  'lcm',
];

function mixedRequests(count: number): PredictBody[] {
  return Array.from({ length: count }, (_value, index) => ({
    prompt: `${things[index % things.length]} on a ${index % 2 ? 'white' : 'green'} background`,
    num_inference_steps: 2 + ((index * 5) % 8),
    guidance_scale: [1, 2, 3, 4.5][index % 4],
    scheduler: schedulers[index % schedulers.length],
    seed: 1000 + index,
    preview: index % 3 ? { every: 2 } : 'off',
  }));
}

it('batching does not change bytes: 32 mixed concurrent requests equal the same requests one by one', async () => {
  const bodies = mixedRequests(32);
  const together = await Promise.all(bodies.map((body) => make(system.url, body)));
  const different: PredictBody[] = [];
  for (const [index, body] of bodies.entries())
    if (!together[index]!.equals(await make(system.url, body))) different.push(body);
  expect(different).toEqual([]);
});

/**
 * The backgrounds that the model was trained on: models/emoji-sd/README.md has the names, its training data the RGB
 * values.
 */
const backgrounds: Record<string, readonly [number, number, number]> = {
  red: [215, 40, 40],
  orange: [245, 140, 30],
  yellow: [250, 220, 60],
  green: [60, 160, 70],
  blue: [50, 100, 220],
  purple: [130, 60, 180],
  pink: [250, 150, 190],
  white: [248, 248, 248],
  black: [22, 22, 24],
  gray: [135, 135, 138],
};

/** Returns the mean RGB of the 4 pixel rows at the top and the 4 at the bottom. */
async function borderColour(png: Buffer): Promise<number[]> {
  const { data, info } = await sharp(png).raw().toBuffer({ resolveWithObject: true });
  const sums = [0, 0, 0];
  const rows = [0, 1, 2, 3, info.height - 4, info.height - 3, info.height - 2, info.height - 1];
  for (const y of rows)
    for (let byte = 0; byte < info.width * 3; byte++) sums[byte % 3]! += data[y * info.width * 3 + byte]!;
  return sums.map((sum) => sum / (rows.length * info.width));
}

function nearestBackground(rgb: readonly number[]): string | undefined {
  const distances = Object.entries(backgrounds).map(([name, colour]) => ({
    name,
    distance: Math.hypot(...colour.map((value, channel) => value - rgb[channel]!)),
  }));
  return distances.toSorted((left, right) => left.distance - right.distance)[0]?.name;
}

it('the image has the background colour that the prompt names', async () => {
  const prompts = Object.keys(backgrounds).map((colour, at) => {
    return { colour, prompt: `${['a rocket', 'a penguin'][at % 2]} on a ${colour} background` };
  });
  const seen = await Promise.all(
    prompts.map(async ({ prompt }) => {
      const png = await make(system.url, { prompt, seed: 3, num_inference_steps: 12 });
      return nearestBackground(await borderColour(png));
    }),
  );
  expect(seen).toEqual(prompts.map(({ colour }) => colour));
});

it('the reported seed makes the image again, and n images have n consecutive seeds', async () => {
  const body = { prompt: 'a guitar on a pink background', num_inference_steps: 4, n: 3 };
  const id = await submit(system.url, body);
  expect(await ended(system.url, id)).toBe('succeeded');
  const { images } = (await poll(system.url, id)) as unknown as { images: { seed: number }[] };
  const again = await make(system.url, { ...body, n: 1, seed: images[2]!.seed });
  expect(again.equals(await fetchImage(system.url, id, 2))).toBe(true);
  expect(new Set(images.map(({ seed }) => seed)).size).toBe(3);
});

/** Removes previews from events: they are deleted after the end, steps are not. */
const withoutPreviews = (events: readonly ServerEvent[]): ServerEvent[] =>
  events.map((event) => {
    if (event.event !== 'progress') return event;
    const { preview: _, ...data } = JSON.parse(event.data) as Record<string, unknown>;
    return { ...event, data: JSON.stringify(data) };
  });

it('a stream resumed at any event id, on either API replica, returns the same events', async () => {
  const [first, second] = system.apis;
  const id = await submit(first!, { prompt: 'a panda', num_inference_steps: 6, preview: { every: 1 } });
  const allEvents = await stream(first!, id);
  expect(allEvents.map(({ event }) => event)).toEqual([
    'queued',
    'started',
    ...Array.from({ length: 6 }, () => 'progress'),
    ...allEvents.filter(({ event }) => event === 'image').map(() => 'image'),
    'succeeded',
    undefined,
  ]);
  for (const [position, { id: lastEventId }] of allEvents.entries()) {
    if (lastEventId === undefined) continue;
    for (const url of [first!, second!])
      expect(withoutPreviews(await stream(url, id, { lastEventId }))).toEqual(
        withoutPreviews(allEvents.slice(position + 1)),
      );
  }
  const chunks = allEvents
    .filter(({ event }) => event === 'image')
    .map(({ data }) => JSON.parse(data) as { b64: string; total_chunks: number });
  expect(chunks).toHaveLength(chunks[0]!.total_chunks);
  const assembled = Buffer.concat(chunks.map(({ b64 }) => Buffer.from(b64, 'base64')));
  expect(assembled.equals(await fetchImage(second!, id))).toBe(true);
});

it('a stream that was cut off resumes on the other API replica', async () => {
  const [first, second] = system.apis;
  const id = await submit(first!, { prompt: 'pizza', num_inference_steps: 60 });
  const before = await stream(first!, id, { until: ({ event }) => event === 'progress' });
  const after = await stream(second!, id, { lastEventId: before.at(-1)!.id! });
  expect(withoutPreviews([...before, ...after])).toEqual(withoutPreviews(await stream(first!, id)));
});

const apples = (count: number): string => Array.from({ length: count }, () => 'apple').join(' ');

it('a prompt beyond the context length is truncated, and the result reports the number of cut tokens', async () => {
  const url = system.url;
  const request = { num_inference_steps: 2, guidance_scale: 3, seed: 5, preview: 'off' };
  const cutsOf = async (body: PredictBody) => {
    const id = await submit(url, { ...request, ...body });
    await ended(url, id);
    const { prompt_tokens_cut: prompt, negative_prompt_tokens_cut: negative } = await poll(url, id);
    return { prompt: prompt as number, negative: negative as number, image: await fetchImage(url, id) };
  };
  expect(await cutsOf({ prompt: apples(8) })).toMatchObject({ prompt: 0, negative: 0 });
  const [longer, longest] = [await cutsOf({ prompt: apples(90) }), await cutsOf({ prompt: apples(91) })];
  // The model reads 77 tokens including start and end; the word has the same number of tokens each time.
  const tokensOfWord = longest.prompt - longer.prompt;
  expect(tokensOfWord).toBeGreaterThan(0);
  expect(longer).toMatchObject({ prompt: 90 * tokensOfWord - 75, negative: 0 });
  expect(longest.image.equals(longer.image)).toBe(true);
  const both = await cutsOf({ prompt: 'a pear', negative_prompt: apples(91) });
  expect(both).toMatchObject({ prompt: 0, negative: longest.prompt });
  // Without guidance the negative prompt is not read.
  const unguided = await cutsOf({ prompt: 'a pear', negative_prompt: apples(91), guidance_scale: 1 });
  expect(unguided).toMatchObject({ prompt: 0, negative: 0 });
});

it('returns the requested size and output format', async () => {
  for (const output_format of ['png', 'jpeg', 'webp']) {
    const bytes = await make(system.url, { prompt: 'a rocket', size: '192x96', num_inference_steps: 2, output_format });
    expect(await sharp(bytes).metadata()).toMatchObject({ format: output_format, width: 192, height: 96 });
  }
});

/** The npm package `replicate` against the running system. */
import Replicate, { type FileOutput, parseProgressFromLogs, type Prediction } from 'replicate';
import { expect, it } from 'vitest';
import { make, fetchImage, poll } from './client.ts';
import { useSharedSystem } from './shared-system.ts';

const model = 'darkroom/emoji-sd';
const prompt = 'a red apple on a white background';
const system = useSharedSystem();
const replicate = new Replicate({ auth: 'r8_secret', baseUrl: `${system.url}/replicate/v1` });

async function bytesOf(url: string): Promise<Buffer> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

interface Refusal {
  status: number;
  body: { title: string; detail: string; status: number; invalid_fields?: { field: string; description: string }[] };
}

/** Returns status and body of the ApiError that a call throws. */
async function refusal(work: Promise<unknown>): Promise<Refusal> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: 'ApiError' });
  const { message, response } = error as Error & { response: Response };
  return { status: response.status, body: JSON.parse(message.slice(message.indexOf('{'), -1)) as Refusal['body'] };
}

it('replicate client: uploads an input Buffer, and lists, reads and deletes files', async () => {
  const prediction = await replicate.predictions.create({ model, input: { prompt, num_inference_steps: 4, seed: 3 } });
  const [drawn] = (await replicate.wait(prediction)).output as string[];
  const bytes = await bytesOf(drawn!);
  const [edited] = (await replicate.run(model, {
    input: { prompt, image: bytes, prompt_strength: 0.5, num_inference_steps: 4 },
  })) as FileOutput[];
  expect((await edited!.blob()).type).toBe('image/png');
  const { results } = (await replicate.files.list()) as unknown as { results: { id: string; size: number }[] };
  expect(results).toContainEqual(expect.objectContaining({ size: bytes.length, content_type: 'image/png' }));
  const file = await replicate.files.create(bytes, { of: 'apple' });
  expect(await replicate.files.get(file.id)).toMatchObject({ id: file.id, metadata: { of: 'apple' } });
  expect(await bytesOf((file.urls as unknown as { download: string }).download)).toEqual(bytes);
  expect(await replicate.files.delete(file.id)).toBe(true);
  await expect(replicate.files.get(file.id)).rejects.toThrow('404');
});

it('replicate client: run returns the same files as the native route', async () => {
  const input = { prompt, num_outputs: 2, num_inference_steps: 4, seed: 7, width: 96, height: 64 };
  const seen: Prediction[] = [];
  const output = (await replicate.run(model, { input }, (prediction) => seen.push(prediction))) as FileOutput[];
  const id = seen.at(-1)!.id;
  expect(output).toHaveLength(2);
  for (const [index, file] of output.entries()) {
    const bytes = Buffer.from(await (await file.blob()).arrayBuffer());
    expect(bytes.equals(await fetchImage(system.url, id, index))).toBe(true);
  }
  const native = { prompt, num_inference_steps: 4, seed: 8, size: '96x64' };
  expect((await make(system.url, native)).equals(await fetchImage(system.url, id, 1))).toBe(true);
});

it('replicate client: creates, polls and waits', async () => {
  const input = { prompt, num_inference_steps: 12, scheduler: 'K_EULER', output_format: 'jpg', output_quality: 80 };
  const created = await replicate.predictions.create({ version: 'emoji-sd', input });
  const self = `${system.url}/replicate/v1/predictions/${created.id}`;
  expect(created).toMatchObject({
    status: 'starting',
    model,
    version: 'emoji-sd',
    output: null,
    error: null,
    urls: { get: self, cancel: `${self}/cancel`, stream: `${self}/stream` },
  });
  const done = await replicate.wait(created, { interval: 20 });
  expect(done).toMatchObject({
    id: created.id,
    status: 'succeeded',
    created_at: created.created_at,
    metrics: { predict_time: expect.any(Number), total_time: expect.any(Number) },
  });
  expect(parseProgressFromLogs(done)).toEqual({ percentage: 1, current: 12, total: 12 });
  expect(await poll(system.url, created.id)).toMatchObject({
    parameters: { scheduler: 'euler', output_format: 'jpeg', output_compression: 80 },
  });
  expect((await bytesOf((done.output as string[])[0]!)).equals(await fetchImage(system.url, created.id))).toBe(true);
  // The prediction's input reproduces the same image.
  const again = await replicate.predictions.create({ model, input: done.input, wait: true });
  expect(again).toMatchObject({ status: 'succeeded', output: done.output });
});

it('replicate client: image URLs behind an https proxy use the forwarded host', async () => {
  const { id } = await replicate.predictions.create({ model, input: { prompt, num_inference_steps: 2 }, wait: 60 });
  const response = await fetch(`${system.url}/replicate/v1/predictions/${id}`, {
    headers: { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'images.example.org' },
  });
  expect(await response.json()).toMatchObject({
    output: [`https://images.example.org/v1/predict/${id}/images/0`],
    urls: { get: `https://images.example.org/replicate/v1/predictions/${id}` },
  });
});

it('replicate client: streams progress and images', async () => {
  const events: { event: string; data: string }[] = [];
  for await (const { event, data } of replicate.stream(`${model}:emoji-sd`, {
    input: { prompt, num_inference_steps: 6, num_outputs: 2 },
  }))
    events.push({ event, data });
  const of = (name: string): string[] => events.filter(({ event }) => event === name).map(({ data }) => data);
  const logs = of('logs');
  // At most ten log events per second.
  expect(logs.length).toBeLessThanOrEqual(12);
  expect(parseProgressFromLogs(logs.at(-1)!)).toMatchObject({ current: 6, total: 6 });
  expect(of('output').map((url) => url.slice(0, 15))).toEqual(['data:image/png;', 'data:image/png;']);
  expect(events.at(-1)).toEqual({ event: 'done', data: '{}' });
});

it('replicate client: reports invalid fields and unknown models', async () => {
  const bad = await refusal(replicate.run(model, { input: { prompt, num_outputs: 20, width: 100, guidance: 2 } }));
  expect(bad).toMatchObject({
    status: 422,
    body: { title: 'Input validation failed', status: 422, detail: expect.stringContaining('- num_outputs is 20') },
  });
  expect(bad.body.invalid_fields?.map(({ field }) => field)).toEqual(['num_outputs', 'guidance']);
  expect(await refusal(replicate.run('stability-ai/sdxl', { input: { prompt } }))).toMatchObject({
    status: 404,
    body: { title: 'model_not_found', detail: 'model "sdxl" was not found, expected one of emoji-sd' },
  });
  const webhook = replicate.predictions.create({ model, input: { prompt }, webhook: 'file:///x' });
  expect((await refusal(webhook)).body.invalid_fields).toMatchObject([{ field: 'webhook' }]);
});

it('replicate client: shows models and versions', async () => {
  const found = await replicate.models.get('darkroom', 'emoji-sd');
  expect(found).toMatchObject({ owner: 'darkroom', name: 'emoji-sd', latest_version: { id: 'emoji-sd' } });
  expect((await replicate.models.list()).results).toEqual([found]);
  expect((await replicate.models.versions.list('darkroom', 'emoji-sd')).results).toEqual([found.latest_version]);
  const version = await replicate.models.versions.get('darkroom', 'emoji-sd', found.latest_version!.id);
  expect(version.openapi_schema).toMatchObject({
    components: { schemas: { Input: { required: ['prompt'], properties: { num_outputs: { maximum: 10 } } } } },
  });
  expect((await refusal(replicate.models.get('darkroom', 'sdxl'))).status).toBe(404);
});

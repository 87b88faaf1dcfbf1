/** Images, previews and checkpoints in a bucket of a real S3 server or a directory; Redis stores only references. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  allKeys,
  describeByteStore,
  installS3Server,
  s3Environment,
  type S3Server,
  startS3Server,
} from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ended, isStep, make, fetchImage, poll, type ServerEvent, stream, submit } from '../e2e/client.ts';
import { openSystem, longWorkerTtl, type System } from '../e2e/system.ts';

let s3: S3Server;
beforeAll(async () => {
  await installS3Server();
  s3 = await startS3Server();
  // The S3 client of this test process reads its credentials from here.
  Object.assign(process.env, s3Environment);
}, 600_000);
afterAll(() => s3.close());

const imageBody = {
  prompt: 'a red apple on a white background',
  seed: 7,
  num_inference_steps: 60,
  preview: { every: 2 },
};

function bucketUrl({ endpoint, bucket }: S3Server, query = ''): string {
  return `s3://${bucket}/of/tests?endpoint=${endpoint}${query}`;
}

/** Starts an S3 server for one test, which the test may kill. */
async function openServer(): Promise<S3Server> {
  const server = await startS3Server();
  onTestFinished(() => server.close());
  return server;
}

async function makeDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'darkroom-bytes-'));
  onTestFinished(() => rm(path, { recursive: true }));
  return path;
}

function dataOf(events: readonly ServerEvent[], name: string): Record<string, unknown>[] {
  return events.filter(({ event }) => event === name).map(({ data }) => JSON.parse(data) as Record<string, unknown>);
}

/** Returns the bytes that outputs, checkpoints and previews take in Redis. */
async function bytesOfOutputs({ store }: System): Promise<number> {
  const keys = (await allKeys(store)).filter((key) => /:(?:output|checkpoint|previews):/.test(key));
  const sizes = await Promise.all(keys.map((key) => store.redis.memory('USAGE', key)));
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

async function getAsPage(url: string, headers: Record<string, string>) {
  const request = get(url, { headers: { ...headers, 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'cors' } });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  answer.resume();
  return { status: answer.statusCode, type: answer.headers['content-type'] };
}

describe('a bucket', () => {
  describeByteStore(() => ({ kind: 'bucket', bucket: s3.bucket, prefix: 'of/suite/', endpoint: s3.endpoint }));
});

describe('a system', () => {
  it.each([
    ['a bucket', () => Promise.resolve(bucketUrl(s3))],
    ['a directory', async () => pathToFileURL(await makeDirectory()).href],
  ])('streams previews and serves images from %s', async (_name, makeUrl) => {
    const plain = await openSystem({ environment: longWorkerTtl });
    const expected = await make(plain.url, imageBody);
    const system = await openSystem({
      environment: { ...longWorkerTtl, ...s3Environment, BYTES_URL: await makeUrl() },
    });
    const id = await submit(system.url, imageBody);
    const events = await stream(system.url, id);
    // Steps before the stream began have no preview.
    const previews = dataOf(events, 'progress').filter(({ preview }) => preview !== undefined);
    expect(previews.length).toBeGreaterThan(0);
    for (const { preview } of previews) expect(preview).toMatch(/^data:image\/jpeg;base64,\/9j\//);
    const chunks = dataOf(events, 'image').map(({ b64 }) => b64 as string);
    expect(Buffer.from(chunks.join(''), 'base64').equals(expected)).toBe(true);
    expect((await fetchImage(system.url, id)).equals(expected)).toBe(true);
    expect(await bytesOfOutputs(system)).toBeLessThan(await bytesOfOutputs(plain));
  });

  it('resumes from a checkpoint of a killed worker in the bucket, to the same bytes', async () => {
    const environment = { ...s3Environment, BYTES_URL: bucketUrl(s3), CHECKPOINT_STEPS: '5' };
    const system = await openSystem({ environment });
    const id = await submit(system.url, imageBody);
    await stream(system.url, id, { until: isStep(12) });
    await system.part('worker').kill();
    await system.start('worker');
    expect(await ended(system.url, id)).toBe('succeeded');
    const log = await readLines(system);
    expect(log.filter(({ msg, resumed }) => msg === 'started' && Number(resumed) > 0)).toHaveLength(1);
    expect((await fetchImage(system.url, id)).equals(await make(system.url, imageBody))).toBe(true);
  });

  it('keeps finished images in the worker while the bucket is unavailable, and loses none', async () => {
    const server = await openServer();
    const system = await openSystem({
      environment: { ...longWorkerTtl, ...s3Environment, BYTES_URL: bucketUrl(server) },
    });
    const before = await submit(system.url, imageBody);
    expect(await ended(system.url, before)).toBe('succeeded');
    await server.kill();
    const ids = await Promise.all([1, 2, 3].map((seed) => submit(system.url, { ...imageBody, seed })));
    await Promise.all(ids.map((id) => stream(system.url, id, { until: isStep(60) })));
    const answer = await fetch(`${system.url}/v1/predict/${before}/images/0`);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    for (const id of ids) expect((await poll(system.url, id)).status).toBe('running');
    // A cancel does not wait for the bucket.
    const canceled = ids.pop()!;
    await fetch(`${system.url}/v1/predict/${canceled}`, { method: 'DELETE' });
    expect(await ended(system.url, canceled)).toBe('canceled');
    // A worker that stops requeues them.
    await system.part('worker').stop();
    for (const id of ids) expect(await poll(system.url, id)).toMatchObject({ status: 'queued' });
    await Promise.all([server.start(), system.start('worker')]);
    expect(await Promise.all(ids.map((id) => ended(system.url, id)))).toEqual(ids.map(() => 'succeeded'));
    for (const id of ids) expect((await fetchImage(system.url, id)).subarray(1, 4).toString()).toBe('PNG');
  });

  it('redirects clients to a signed link to the bucket, which needs no API key', async () => {
    const environment = {
      ...s3Environment,
      BYTES_URL: bucketUrl(s3, `&links=${s3.endpoint}`),
      API_KEYS: 'ann:a-key-of-the-tests',
    };
    const system = await openSystem({ environment: { ...longWorkerTtl, ...environment } });
    const headers = { authorization: 'Bearer a-key-of-the-tests', 'content-type': 'application/json' };
    const made = await fetch(`${system.url}/v1/predict`, { method: 'POST', headers, body: JSON.stringify(imageBody) });
    const { request_id: id } = (await made.json()) as { request_id: string };
    const path = `${system.url}/v1/predict/${id}/images/0`;
    await expect
      .poll(async () => (await fetch(path, { headers, redirect: 'manual' })).status, { timeout: 60_000 })
      .toBe(307);
    const link = (await fetch(path, { headers, redirect: 'manual' })).headers.get('location')!;
    const answer = await fetch(link);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
    const forged = link.replace(/(?<=X-Amz-Signature=)./, (digit) => (digit === '0' ? '1' : '0'));
    expect((await fetch(forged)).status).toBe(403);
    expect((await fetch(path, { redirect: 'manual' })).status).toBe(401);
    // A browser page may fetch only from its own origin, so it gets no redirect. Node's fetch cannot set these headers.
    const page = await getAsPage(path, { authorization: 'Bearer a-key-of-the-tests' });
    expect([page.status, page.type]).toEqual([200, 'image/png']);
  });

  it('deletes all files of a request when it expires', async () => {
    const path = await makeDirectory();
    const environment = { BYTES_URL: pathToFileURL(path).href, RESULT_TTL_S: '1' };
    const system = await openSystem({ environment: { ...longWorkerTtl, ...environment } });
    expect(await ended(system.url, await submit(system.url, imageBody))).toBe('succeeded');
    const filesIn = async (): Promise<number> =>
      (await readdir(path, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile()).length;
    await expect.poll(filesIn, { timeout: 30_000 }).toBe(0);
  });
});

async function readLines({ logFile }: System): Promise<{ msg?: string; resumed?: number }[]> {
  const text = await readFile(logFile, 'utf8');
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { msg?: string });
}

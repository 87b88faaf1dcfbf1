/** Pictures, previews and checkpoints in a bucket of a real S3 server, and in a directory; Redis holds where they are. */
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
import { ended, isStep, make, picture, poll, type ServerEvent, stream, submit } from '../e2e/client.ts';
import { openSystem, patience, type System } from '../e2e/system.ts';

let s3: S3Server;
beforeAll(async () => {
  await installS3Server();
  s3 = await startS3Server();
  // What the SDK of this process finds.
  Object.assign(process.env, s3Environment);
}, 600_000);
afterAll(() => s3.close());

const wish = { prompt: 'a red apple on a white background', seed: 7, num_inference_steps: 60, preview: { every: 2 } };
/** In many chunks. */
const small = { ...s3Environment, CHUNK_BYTES: '1024' };

function bucketUrl({ endpoint, bucket }: S3Server, query = ''): string {
  return `s3://${bucket}/of/tests?endpoint=${endpoint}${query}`;
}

/** One of its own. */
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

/** Bytes of values of Redis that belong to requests. */
async function bytesOfOutputs({ store }: System): Promise<number> {
  const keys = (await allKeys(store)).filter((key) => /:(?:output|checkpoint|previews):/.test(key));
  const sizes = await Promise.all(keys.map((key) => store.redis.memory('USAGE', key)));
  return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

async function askAsPage(url: string, headers: Record<string, string>) {
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
  ])('shows pictures as they develop, and gives them out, from %s', async (_name, placeOf) => {
    const plain = await openSystem({ environment: { ...patience, CHUNK_BYTES: '1024' } });
    const expected = await make(plain.url, wish);
    const system = await openSystem({ environment: { ...patience, ...small, BYTES_URL: await placeOf() } });
    const id = await submit(system.url, wish);
    const events = await stream(system.url, id);
    // There are none of the steps before somebody looked, if the picture was done by then.
    const previews = dataOf(events, 'progress').filter(({ preview }) => preview !== undefined);
    expect(previews.length).toBeGreaterThan(0);
    for (const { preview } of previews) expect(preview).toMatch(/^data:image\/jpeg;base64,\/9j\//);
    const chunks = dataOf(events, 'image').map(({ b64 }) => b64 as string);
    expect(chunks.length).toBeGreaterThan(1);
    expect(Buffer.from(chunks.join(''), 'base64').equals(expected)).toBe(true);
    expect((await picture(system.url, id)).equals(expected)).toBe(true);
    expect(await bytesOfOutputs(system)).toBeLessThan(await bytesOfOutputs(plain));
  });

  it('goes on from a checkpoint that a killed worker has left there, to the same bytes', async () => {
    const environment = { ...small, BYTES_URL: bucketUrl(s3), CHECKPOINT_STEPS: '5' };
    const system = await openSystem({ environment });
    const id = await submit(system.url, wish);
    await stream(system.url, id, { until: isStep(12) });
    await system.part('worker').kill();
    await system.start('worker');
    expect(await ended(system.url, id)).toBe('succeeded');
    const log = await readLines(system);
    expect(log.filter(({ msg, resumed }) => msg === 'started' && Number(resumed) > 0)).toHaveLength(1);
    expect((await picture(system.url, id)).equals(await make(system.url, wish))).toBe(true);
  });

  it('lets finished pictures wait while the store is away, and loses none', async () => {
    const server = await openServer();
    const system = await openSystem({ environment: { ...patience, ...small, BYTES_URL: bucketUrl(server) } });
    const before = await submit(system.url, wish);
    expect(await ended(system.url, before)).toBe('succeeded');
    await server.kill();
    const ids = await Promise.all([1, 2, 3].map((seed) => submit(system.url, { ...wish, seed })));
    await Promise.all(ids.map((id) => stream(system.url, id, { until: isStep(60) })));
    const answer = await fetch(`${system.url}/v1/predict/${before}/images/0`);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    for (const id of ids) expect((await poll(system.url, id)).status).toBe('running');
    // Who cancels does not wait for the store.
    const canceled = ids.pop()!;
    await fetch(`${system.url}/v1/predict/${canceled}`, { method: 'DELETE' });
    expect(await ended(system.url, canceled)).toBe('canceled');
    // A worker that stops gives them back.
    await system.part('worker').stop();
    for (const id of ids) expect(await poll(system.url, id)).toMatchObject({ status: 'queued' });
    await Promise.all([server.start(), system.start('worker')]);
    expect(await Promise.all(ids.map((id) => ended(system.url, id)))).toEqual(ids.map(() => 'succeeded'));
    for (const id of ids) expect((await picture(system.url, id)).subarray(1, 4).toString()).toBe('PNG');
  });

  it('sends clients to the bucket by a signed link that needs no key', async () => {
    const environment = { ...small, BYTES_URL: bucketUrl(s3, `&links=${s3.endpoint}`), API_KEYS: 'ann:a-key' };
    const system = await openSystem({ environment: { ...patience, ...environment } });
    const headers = { authorization: 'Bearer a-key', 'content-type': 'application/json' };
    const made = await fetch(`${system.url}/v1/predict`, { method: 'POST', headers, body: JSON.stringify(wish) });
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
    // A page of a browser may fetch from its own server only. Node's fetch does not let such headers be set.
    const page = await askAsPage(path, { authorization: 'Bearer a-key' });
    expect([page.status, page.type]).toEqual([200, 'image/png']);
  });

  it('leaves nothing there when its requests are over', async () => {
    const path = await makeDirectory();
    const environment = { BYTES_URL: pathToFileURL(path).href, RESULT_TTL_S: '1', LEAK_SWEEP_INTERVAL_S: '1' };
    const system = await openSystem({ environment: { ...patience, ...environment } });
    expect(await ended(system.url, await submit(system.url, wish))).toBe('succeeded');
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

/**
 * Cost of a finished image of 1.5 MB in Redis: memory, and network bytes while a worker stores it and a client fetches
 * it once. The image is stored in Redis, in a directory, or in a bucket of a real S3 server.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BytesAddress } from '@darkroom/core';
import { connectStore, storeBytes, newRequestId, readOutput, splitOutput, type StoreConnection } from '@darkroom/store';
import {
  installS3Server,
  removeKeys,
  s3Environment,
  seedRunning,
  startPrivateRedis,
  startS3Server,
  writeNow,
} from '@darkroom/testing';
import { it } from 'vitest';
import { publish } from './publish.ts';
import { median, medianWithRange } from './report.ts';
import { type Cell, tableOf } from './table.ts';

const data = randomBytes(1_500_000);
const images = 20;

async function traffic({ redis }: StoreConnection): Promise<{ in: number; out: number }> {
  const stats = await redis.info('stats');
  const of = (name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(stats)?.[1]);
  return { in: of('total_net_input_bytes'), out: of('total_net_output_bytes') };
}

/** Stores an image like a worker and fetches it like the API; times in ms. */
async function storeOne(store: StoreConnection): Promise<{ putMs: number; getMs: number; bytes: number }> {
  const id = await newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() });
  const { worker, delivery } = await seedRunning(store, { id, worker: { workerId: id } });
  const begin = performance.now();
  const held = await storeBytes(store, delivery, { folder: 'outputs', name: '0', data });
  const output = { index: 0, contentType: 'image/png', data, held, facts: {}, chunkBytes: 131_070 };
  const end = { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } } as const;
  await writeNow(store, worker, ...splitOutput(delivery, output), end);
  const stored = performance.now();
  if (!(await readOutput(store, id, 0))?.data.equals(data))
    throw new Error('the fetched bytes differ from the stored ones');
  const bytes = await store.redis.memory('USAGE', store.keysOf('tiny').output(id, 0), 'SAMPLES', 0);
  return { putMs: stored - begin, getMs: performance.now() - stored, bytes: bytes ?? 0 };
}

it('Redis memory and traffic per image', { timeout: 300_000 }, async () => {
  await installS3Server();
  Object.assign(process.env, s3Environment);
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-bench-bytes-'));
  const [redis, s3] = await Promise.all([startPrivateRedis(), startS3Server()]);
  const places: [string, BytesAddress | undefined][] = [
    ['in Redis', undefined],
    ['in a directory', { kind: 'directory', path: directory }],
    ['in a bucket', { kind: 'bucket', bucket: s3.bucket, prefix: '', endpoint: s3.endpoint }],
  ];
  const found: Record<string, Record<string, Cell>> = {};
  try {
    for (const [name, bytes] of places) {
      const store = connectStore({ url: redis.url, bytes });
      await storeOne(store);
      const before = await traffic(store);
      const runs = [];
      for (let run = 0; run < images; run++) runs.push(await storeOne(store));
      const after = await traffic(store);
      found[name] = {
        'memory of Redis': median(runs.map((run) => run.bytes)),
        'into Redis': Math.round((after.in - before.in) / images),
        'out of Redis': Math.round((after.out - before.out) / images),
        'to store it': medianWithRange(runs.map((run) => run.putMs)),
        'to fetch it': medianWithRange(runs.map((run) => run.getMs)),
      };
      await removeKeys(store);
      await store.close();
    }
  } finally {
    await Promise.all([redis.stop(), s3.close()]);
    rmSync(directory, { recursive: true });
  }
  publish({
    name: 'bytes',
    title: 'What a finished image of 1.5 MB costs Redis',
    notes: [
      `${images} images, each stored with a worker's calls and fetched once with the API's calls; the bucket is on Versity's S3 gateway on the same machine. Medians, with minimum and maximum.`,
    ],
    tables: [
      tableOf('Bytes of Redis for an image (less is better)', found, ['memory of Redis', 'into Redis', 'out of Redis']),
      tableOf('ms for an image (less is better)', found, ['to store it', 'to fetch it']),
    ],
  });
});

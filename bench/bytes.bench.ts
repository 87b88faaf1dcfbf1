/**
 * What a finished picture of 1.5 MB costs Redis: the memory it takes, and the bytes that go in and out for it while a worker stores it and
 * a client fetches it once. Kept in Redis, in a directory, and in a bucket of a real S3 server.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BytesAddress } from '@darkroom/core';
import { connectStore, keepBytes, newRequestId, readOutput, splitOutput, type StoreConnection } from '@darkroom/store';
import {
  installS3Server,
  removeKeys,
  s3Environment,
  seedRunning,
  startPrivateRedis,
  startS3Server,
  write,
} from '@darkroom/testing';
import { it } from 'vitest';
import { publish } from './publish.ts';
import { median, middle } from './report.ts';
import { type Cell, tableOf } from './table.ts';

const data = randomBytes(1_500_000);
const pictures = 20;

async function traffic({ redis }: StoreConnection): Promise<{ in: number; out: number }> {
  const stats = await redis.info('stats');
  const of = (name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(stats)?.[1]);
  return { in: of('total_net_input_bytes'), out: of('total_net_output_bytes') };
}

/** Stores a picture as a worker does and fetches it as the API does; ms. */
async function storeOne(store: StoreConnection): Promise<{ putMs: number; getMs: number; bytes: number }> {
  const id = await newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() });
  const { worker, delivery } = await seedRunning(store, { id, worker: { workerId: id } });
  const begin = performance.now();
  const held = await keepBytes(store, delivery, { folder: 'outputs', name: '0', data });
  const output = { index: 0, contentType: 'image/png', data, held, facts: {}, chunkBytes: 131_072 };
  const end = { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } } as const;
  await write(store, worker, ...splitOutput(delivery, output), end);
  const stored = performance.now();
  if (!(await readOutput(store, id, 0))?.data.equals(data)) throw new Error('it came back otherwise');
  const bytes = await store.redis.memory('USAGE', store.keysOf('tiny').output(id, 0), 'SAMPLES', 0);
  return { putMs: stored - begin, getMs: performance.now() - stored, bytes: bytes ?? 0 };
}

it('bytes of Redis for each picture', { timeout: 300_000 }, async () => {
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
      for (let run = 0; run < pictures; run++) runs.push(await storeOne(store));
      const after = await traffic(store);
      found[name] = {
        'memory of Redis': median(runs.map((run) => run.bytes)),
        'into Redis': Math.round((after.in - before.in) / pictures),
        'out of Redis': Math.round((after.out - before.out) / pictures),
        'to store it': middle(runs.map((run) => run.putMs)),
        'to fetch it': middle(runs.map((run) => run.getMs)),
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
    title: 'What a finished picture of 1.5 MB costs Redis',
    notes: [
      `${pictures} pictures, each stored by a worker's calls and fetched once by the API's; the bucket is one of Versity's S3 gateway on the same machine. Medians, with the least and the most.`,
    ],
    tables: [
      tableOf('Bytes of Redis for a picture (less is better)', found, [
        'memory of Redis',
        'into Redis',
        'out of Redis',
      ]),
      tableOf('ms for a picture (less is better)', found, ['to store it', 'to fetch it']),
    ],
  });
});

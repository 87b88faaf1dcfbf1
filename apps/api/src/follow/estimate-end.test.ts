import { heartbeatWorker, type PoolThroughput } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { acceptedSchema, requestSchema } from '../openapi/api-schemas.ts';
import { type EstimatedRequest, estimateEnd } from './estimate-end.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi } from '../testing/test-api.ts';

/** Throughput of a worker: a step takes 100 to 200 ms, a unit of cost 10 to 20 ms. */
const worker: PoolThroughput = {
  workers: 1,
  capacity: 8,
  costPerMs: { fast: 0.1, slow: 0.05 },
  stepMs: { fast: 100, slow: 200 },
  share: { fast: 1, slow: 1 },
  remainingCost: 0,
};
const twoWorkers: PoolThroughput = { ...worker, workers: 2, costPerMs: { fast: 0.2, slow: 0.1 } };
/** Waiting request of ten steps that cost one unit each. */
const waiting: EstimatedRequest = {
  state: 'queued',
  cost: 10,
  costAhead: 0,
  outputCount: 1,
  slots: 1,
  outputSteps: 10,
  done: 0,
};

describe('an estimate', () => {
  it('is undefined for an ended request', () => {
    expect(estimateEnd({ ...waiting, state: 'succeeded' }, worker)).toBeUndefined();
  });

  it('is at least the time of its own sequential steps', () => {
    expect(estimateEnd(waiting, worker)).toEqual({ min: 1, max: 2.2 });
  });

  it('includes the load time of the model for a running request', () => {
    const loading: EstimatedRequest = { ...waiting, state: 'running', loadingMs: 30_000 };
    expect(estimateEnd({ ...waiting, state: 'running' }, worker)).toEqual({ min: 1, max: 2 });
    expect(estimateEnd(loading, worker)).toEqual({ min: 31, max: 32 });
    expect(estimateEnd(loading, worker, { loadMs: 4000, isAsleep: false })).toEqual({ min: 5, max: 32 });
  });

  it('counts the cost ahead and in progress at the throughput of all workers', () => {
    const busy = { ...worker, remainingCost: 500 };
    expect(estimateEnd({ ...waiting, costAhead: 490 }, busy)).toEqual({ min: 10, max: 22 });
    const bothBusy = { ...twoWorkers, remainingCost: 1000 };
    expect(estimateEnd({ ...waiting, costAhead: 990 }, bothBusy)).toEqual({ min: 10, max: 22 });
  });

  it('counts the remaining steps of a running request, in several rounds if it has more rows than slots', () => {
    const running = { ...waiting, state: 'running' } as const;
    expect(estimateEnd({ ...running, done: 4 }, worker)).toEqual({ min: 0.6, max: 1.2 });
    expect(estimateEnd({ ...running, outputCount: 4, slots: 4, done: 20 }, worker)).toEqual({ min: 0.5, max: 1 });
    expect(estimateEnd({ ...running, outputCount: 4, slots: 4, done: 20 }, { ...worker, capacity: 2 })).toEqual({
      min: 1,
      max: 2,
    });
  });
});

describe('an estimate of texts that end before max_tokens', () => {
  /** Texts of this model use 20 to 50 % of max_tokens. */
  const writer = { ...worker, share: { fast: 0.2, slow: 0.5 } };

  it('scales its own tokens and the cost ahead by the usual share', () => {
    expect(estimateEnd(waiting, writer)).toEqual({ min: 0.2, max: 1.1 });
    expect(estimateEnd({ ...waiting, costAhead: 990 }, writer)).toEqual({ min: 2, max: 11 });
  });

  it('for a running text: may end now within the usual share, and counts max_tokens beyond it', () => {
    const running = { ...waiting, state: 'running' } as const;
    expect(estimateEnd({ ...running, done: 1 }, writer)).toEqual({ min: 0.1, max: 0.8 });
    expect(estimateEnd({ ...running, done: 3 }, writer)).toEqual({ min: 0, max: 0.4 });
    expect(estimateEnd({ ...running, done: 6 }, writer)).toEqual({ min: 0, max: 0.8 });
  });
});

describe('over the API', () => {
  const pace = { costMs: { fast: 0.01, slow: 0.02 }, stepMs: { fast: 100, slow: 200 }, remainingCost: 0 };
  const identity = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };

  it('returns eta_seconds for open requests once a worker has measured its throughput, growing with the queue', async () => {
    let nowMs = Date.now();
    const test = await openTestApi({ clock: { now: () => nowMs } });
    const unknown = acceptedSchema.parse(await (await test.post({ prompt: 'a fox' })).json());
    expect(unknown.eta_seconds).toBeUndefined();
    await startWorker(test.store);
    await heartbeatWorker(test.store, identity, { pace });
    nowMs += 2000;
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) ids.push(await test.submit());
    const etas = await Promise.all(
      ids.map(async (id) => {
        const view = requestSchema.parse(await (await test.api.request(`/v1/predict/${id}`)).json());
        return view.eta_seconds!;
      }),
    );
    // 0.01 ms per pixel, 12 steps with guidance: 3.93 s per request; one request is ahead of the first.
    expect(etas.map(({ min }) => min)).toEqual([7.8, 11.7, 15.7]);
    const accepted = acceptedSchema.parse(await (await test.post({ prompt: 'a fox' })).json());
    expect(accepted.eta_seconds!.min).toBe(19.6);
    const running = await runNext(test.store);
    await running.progress(4);
    const view = requestSchema.parse(await (await test.api.request(`/v1/predict/${unknown.request_id}`)).json());
    expect([view.status, view.eta_seconds]).toEqual(['running', { min: 0.8, max: 1.6 }]);
    await running.output(0, Buffer.from('png'));
    await running.finish();
    const ended = requestSchema.parse(await (await test.api.request(`/v1/predict/${unknown.request_id}`)).json());
    expect(ended.eta_seconds).toBeUndefined();
  });

  it('returns a Retry-After for a full queue that is before the queue can be drained', async () => {
    let nowMs = Date.now();
    const test = await openTestApi({ clock: { now: () => nowMs }, config: { queueMaxLength: 2 } });
    const retryAfter = async (body: object = {}) => {
      nowMs += 2000;
      return (await test.post({ prompt: 'a fox', ...body })).headers.get('retry-after');
    };
    await test.submit();
    await test.submit();
    expect(await retryAfter()).toBe('5');
    await startWorker(test.store);
    await heartbeatWorker(test.store, identity, { pace });
    // Two requests of 3.93 s each.
    expect(await retryAfter()).toBe('7');
    await heartbeatWorker(test.store, identity, { pace: { ...pace, remainingCost: 1_000_000_000 } });
    expect(await retryAfter()).toBe('30');
    await heartbeatWorker(test.store, identity, { pace: { ...pace, costMs: { fast: 1e-9, slow: 1e-9 } } });
    expect(await retryAfter()).toBe('1');
  });

  it('counts the cost ahead beyond the snapshot that it reads', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    await heartbeatWorker(test.store, identity, { pace });
    for (let count = 0; count < 99; count++) await test.submit();
    const last = acceptedSchema.parse(await (await test.post({ prompt: 'a fox' })).json());
    expect(last.eta_seconds!.min).toBeCloseTo(100 * 3.932, 0);
  });
});

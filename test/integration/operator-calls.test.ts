/** Commands that an operator sends to a worker through Redis, and the worker's answers. */
import { answerCall, sendCommand, findWorkers, readAnswers, readStats, type WorkerCommand } from '@darkroom/store';
import { expect, it } from 'vitest';
import { type Bench, lease, openBench, stateOf, submit, startBench } from './worker-bench.ts';

const name = { shard: 'tiny', workerId: 'w1' };

async function call({ store }: Bench, command: WorkerCommand): Promise<object> {
  const id = `call-${command}`;
  expect(await sendCommand(store, name, { type: command, call: id })).toBe(true);
  let answer: object | undefined;
  await expect
    .poll(async () => {
      [answer] = await readAnswers(store, [name], id);
      return answer;
    })
    .toBeDefined();
  return answer!;
}

async function open(): Promise<Bench> {
  const bench = await startBench();
  return bench;
}

it("check_health reports the engine's health, and a healthy answer without an engine while asleep", async () => {
  const bench = await open();
  const { executor } = bench;
  const health = { isHealthy: true, slots: 2, waitingRequests: 1, latencyMs: 3 };
  executor.checkHealth = () => Promise.resolve(health);
  expect(await call(bench, 'check_health')).toEqual({ state: 'ready', ...health });
  await call(bench, 'sleep');
  await expect.poll(async () => (await readStats(bench.store, 'tiny')).workers.asleep).toBe(1);
  await bench.store.redis.del(bench.store.keysOf('tiny').answers('call-check_health'));
  executor.checkHealth = () => expect.unreachable('there is no engine');
  expect(await call(bench, 'check_health')).toEqual({ state: 'asleep', isHealthy: true });
});

it('answers memory while check_health hangs, and reports a hanging engine as unhealthy', async () => {
  const bench = await open();
  bench.executor.checkHealth = () => new Promise(() => {});
  const asking = call(bench, 'check_health');
  expect(await call(bench, 'memory')).toMatchObject({ state: 'ready', processBytes: expect.any(Number) as number });
  expect(await asking).toEqual({ state: 'ready', isHealthy: false });
});

it('answers sleep and wake at once with the new state, and reports the memory of the engine process', async () => {
  const bench = await open();
  const { store, executor } = bench;
  Object.assign(executor, { enginePid: process.pid });
  const { engineBytes } = (await call(bench, 'memory')) as { engineBytes: number };
  expect(engineBytes).toBeGreaterThan(10_000_000);
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  expect(await call(bench, 'sleep')).toEqual({ state: 'vacating' });
  expect(await call(bench, 'wake')).toEqual({ state: 'ready' });
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
});

it('finds workers by their full id or by the id prefix that one start shares', async () => {
  const { store } = await open();
  const benches = ['gpu-0', 'gpu-1', 'gpus'].map((workerId) => openBench({ store, workerId }));
  await Promise.all(benches.map(({ worker }) => worker.start()));
  const idsOf = async (id: string) => (await findWorkers(store, id)).map(({ workerId }) => workerId);
  expect(await idsOf('w1')).toEqual(['w1']);
  expect(await idsOf('gpu')).toEqual(['gpu-0', 'gpu-1']);
  expect(await idsOf('gpu-1')).toEqual(['gpu-1']);
  expect(await idsOf('gp')).toEqual([]);
});

it('an answer that no client reads expires', async () => {
  const { store } = await open();
  await answerCall(store, name, { call: 'nobody', answer: {} });
  expect(await store.redis.pttl(store.keysOf('tiny').answers('nobody'))).toBeGreaterThan(0);
});

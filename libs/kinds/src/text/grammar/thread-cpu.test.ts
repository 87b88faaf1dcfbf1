import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { kernelThreadId, threadCpuMs } from './thread-cpu.ts';

const spinner = `
  const end = process.cpuUsage().user + 300_000;
  while (process.cpuUsage().user < end);`;

it('counts the CPU time of one thread without that of others', async () => {
  const id = kernelThreadId();
  const before = { thread: threadCpuMs(id), process: threadCpuMs(undefined) };
  await once(new Worker(spinner, { eval: true }), 'exit');
  expect(threadCpuMs(undefined) - before.process).toBeGreaterThan(299);
  expect(threadCpuMs(id) - before.thread).toBeLessThan(150);
});

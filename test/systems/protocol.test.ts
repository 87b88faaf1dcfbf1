import { connectStore } from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { conform } from '../protocol/conform.ts';
import { explore } from '../protocol/explore.ts';
import { maxAttempts } from '../protocol/model.ts';

it('scripts', { timeout: 600_000 }, async () => {
  const redis = await startPrivateRedis();
  const store = connectStore({ url: redis.url, maxAttempts });
  onTestFinished(async () => {
    await store.close();
    await redis.stop();
  });
  const graph = explore({ name: 'x', requests: 1, workers: 1, hasProgress: true, hasRelease: true, hasLives: true });
  const t = performance.now(); const cpu = process.cpuUsage();
  const coverage = await conform(store, graph);
  console.log(graph.length, coverage.states, coverage.transitions, coverage.resends, performance.now() - t, process.cpuUsage(cpu), (await store.redis.info('cpu')).match(/used_cpu_user:.*/)?.[0], (await store.redis.info('commandstats')).split('\n').filter(x=>/eval|copy|pttl/.test(x)));
  expect(coverage.differences.slice(0, 3).join('\n\n')).toBe('');
});

import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../logging/logger.ts';
import { LoopsByName } from './loops-by-name.ts';

function createLoops(names: string[], runOnce: (name: string) => Promise<unknown>, discoverEveryMs = 1): LoopsByName {
  const log = createLogger({ app: 'test', stream: { write: () => {} } });
  const options = { name: 'sweep', discover: async () => names, discoverEveryMs, intervalMs: 3_600_000, runOnce, log };
  const loops = new LoopsByName(options);
  onTestFinished(() => loops.stop());
  return loops;
}

it('takes turns for every name, and for those that come later', async () => {
  const names = ['a'];
  const turns: string[] = [];
  const loops = createLoops(names, async (name) => turns.push(name));
  await loops.start();
  await expect.poll(() => turns).toEqual(['a']);
  names.push('b');
  await expect.poll(() => turns).toEqual(['a', 'b']);
  await loops.trigger('a');
  expect(turns).toEqual(['a', 'b', 'a']);
});

it('a turn that does not end keeps no other from its own', async () => {
  const turns: string[] = [];
  const over = new AbortController();
  const endless = once(over.signal, 'abort');
  const loops = createLoops(['stuck', 'b'], async (name) => (name === 'stuck' ? endless : turns.push(name)));
  await loops.start();
  await expect.poll(() => turns).toEqual(['b']);
  await loops.trigger('b');
  expect(turns).toEqual(['b', 'b']);
  over.abort();
});

it('takes no turn after its stop, for whatever name', async () => {
  const turns: string[] = [];
  const loops = createLoops(['a', 'b'], async (name) => turns.push(name), 3_600_000);
  await loops.start();
  await expect.poll(() => turns).toEqual(['a', 'b']);
  await loops.stop();
  await loops.trigger('a');
  expect(turns).toEqual(['a', 'b']);
});

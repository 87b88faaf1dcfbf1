import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../logging/logger.ts';
import { LoopsByName } from './loops-by-name.ts';

function createLoops(
  names: string[],
  runOnce: (name: string) => Promise<unknown>,
  discoverEveryMs = 1,
  listen?: (name: string) => Promise<() => void>,
): LoopsByName {
  const log = createLogger({ app: 'test', stream: { write: () => {} } });
  const discover = async (): Promise<string[]> => [...names];
  const intervalMs = 3_600_000;
  const options = { name: 'sweep', discover, discoverEveryMs, intervalMs, runOnce, log, ...(listen && { listen }) };
  const loops = new LoopsByName(options);
  onTestFinished(() => loops.stop());
  return loops;
}

it('runs a loop for every name, including names discovered later', async () => {
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

it('runs other loops while one tick does not end', async () => {
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

it('runs no tick after its stop', async () => {
  const turns: string[] = [];
  const loops = createLoops(['a', 'b'], async (name) => turns.push(name), 3_600_000);
  await loops.start();
  await expect.poll(() => turns).toEqual(['a', 'b']);
  await loops.stop();
  await loops.trigger('a');
  expect(turns).toEqual(['a', 'b']);
});

it('stops the loop and subscription of a removed name, and starts them again when the name returns', async () => {
  const names = ['a', 'b'];
  const turns: string[] = [];
  const listening = new Set<string>();
  const loops = createLoops(
    names,
    async (name) => turns.push(name),
    1,
    async (name) => {
      listening.add(name);
      return () => listening.delete(name);
    },
  );
  await loops.start();
  await expect.poll(() => turns).toEqual(['a', 'b']);
  names.shift();
  await expect.poll(() => [...listening]).toEqual(['b']);
  await loops.trigger('a');
  expect(turns).toEqual(['a', 'b']);
  names.push('a');
  await expect.poll(() => turns).toEqual(['a', 'b', 'a']);
});

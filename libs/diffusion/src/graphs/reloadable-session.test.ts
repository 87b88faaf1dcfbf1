import type { OnnxSession } from '@darkroom/runtime';
import { expect, it } from 'vitest';
import { ReloadableSession } from './reloadable-session.ts';

function createHarness() {
  const log: string[] = [];
  /** Ends the current run. */
  const ends: (() => void)[] = [];
  const fault: { next?: Error } = {};
  let loads = 0;

  function load(): Promise<OnnxSession> {
    const name = `session ${loads++}`;
    const { next } = fault;
    delete fault.next;
    if (next !== undefined) return Promise.reject(next);
    log.push(`${name} loaded`);
    const run = () => new Promise<never>((resolve) => ends.push(() => resolve(name as never)));
    const dispose = () => Promise.resolve(log.push(`${name} disposed`)).then(() => {});
    return Promise.resolve({ run, dispose, inputs: [], outputs: [], device: 'cpu' } as unknown as OnnxSession);
  }
  return { said: log, ends, fault, load };
}

const nextTurn = () => new Promise(setImmediate);

it('frees the graph, and loads it again on the next call', async () => {
  const { said, ends, load } = createHarness();
  const session = new ReloadableSession(await load(), load);
  await session.dispose();
  await session.dispose();
  expect([session.isLoaded, said]).toEqual([false, ['session 0 loaded', 'session 0 disposed']]);
  const calls = [session.run({}, ''), session.run({}, '')];
  await nextTurn();
  for (const end of ends) end();
  expect(await Promise.all(calls)).toEqual(['session 1', 'session 1']);
  expect(said.slice(2)).toEqual(['session 1 loaded']);
});

it('does not free the graph during a call', async () => {
  const { said, ends, load } = createHarness();
  const session = new ReloadableSession(await load(), load);
  const calls = [session.run({}, ''), session.run({}, '')];
  await nextTurn();
  await session.dispose();
  ends[0]!();
  await calls[0];
  expect(said).toEqual(['session 0 loaded']);
  ends[1]!();
  await calls[1];
  expect(said).toEqual(['session 0 loaded', 'session 0 disposed']);
});

it('fails the call if the graph cannot be loaded, and tries to load it again for the next call', async () => {
  const { said, ends, fault, load } = createHarness();
  const session = new ReloadableSession(await load(), load);
  await session.dispose();
  fault.next = new Error('no memory');
  await expect(session.run({}, '')).rejects.toThrow('no memory');
  expect(session.isLoaded).toBe(false);
  const call = session.run({}, '');
  await nextTurn();
  ends[0]!();
  expect(await call).toBe('session 2');
  expect(said.at(-1)).toBe('session 2 loaded');
});

/** What goes wrong in the middle of something else. All else is in test/integration. */
import type { ModelCard } from '@darkroom/core';
import type { Executor } from '@darkroom/executor';
import { silentLogger } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import type { MemoryPlace } from '../memory/memory-keeper.ts';
import { EngineLife } from './engine-life.ts';
import type { LoadWatch } from './load-watch.ts';

const card = { id: 'tiny' } as ModelCard;

const nothing = (): void => {};

/** The next call of it ends when the test says so. */
function holdable<Result>(usual: Result) {
  let held: Promise<Result> | undefined;
  const call = vi.fn<() => Promise<Result>>(() => held ?? Promise.resolve(usual));
  const hold = (): (() => void) => {
    let release!: () => void;
    held = new Promise((resolve) => (release = () => resolve(usual)));
    return () => {
      held = undefined;
      release();
    };
  };
  return { call, hold };
}

function open({ isShared = false }: { isShared?: boolean } = {}) {
  const start = vi.fn<() => Promise<ModelCard>>(() => Promise.resolve(card));
  const executor = { start, shutdown: () => Promise.resolve() } as unknown as Executor;
  const loads = { watch: (load: () => Promise<unknown>) => load() } as LoadWatch;
  const register = holdable<'registered' | 'leased'>('registered');
  const take = holdable(true);
  const loaded = holdable<void>(undefined);
  const free = vi.fn<() => void>();
  const place = { attach: nothing, look: nothing, leave: nothing, free, take: take.call, loaded: loaded.call };
  let isBusy = false;
  const life = new EngineLife({
    executor,
    loads,
    shared: isShared ? { place: { ...place, waitMs: 0 } as unknown as MemoryPlace, card } : undefined,
    isBusy: () => isBusy,
    register: register.call,
    log: silentLogger(),
  });
  const setBusy = (is: boolean): void => void (isBusy = is);
  return { life, start, register, take, loaded, free, setBusy };
}

const giveBack = (): Promise<void> => Promise.resolve();

it('is loaded anew where it is waked while it is told that the engine died in a vacate', async () => {
  const { life, start, register, setBusy } = open();
  await life.load();
  setBusy(true);
  const sleeping = life.sleep();
  await vi.waitFor(() => expect(life.state).toBe('vacating'));
  const release = register.hold();
  const restarting = life.restart(giveBack);
  const waking = life.wake();
  release();
  expect(await waking).toBe(true);
  await restarting;
  expect(await sleeping).toBe(false);
  expect(life.state).toBe('ready');
  expect(start).toHaveBeenCalledTimes(2);
});

it('is not ready with an engine that died while it was measured', async () => {
  const { life, start, loaded, free } = open({ isShared: true });
  await life.load();
  const release = loaded.hold();
  const waking = life.wake();
  await vi.waitFor(() => expect(loaded.call).toHaveBeenCalled());
  const restarting = life.restart(giveBack);
  release();
  expect(await waking).toBe(false);
  await restarting;
  expect(free).toHaveBeenCalled();
  await vi.waitFor(() => expect(life.state).toBe('ready'));
  expect(start).toHaveBeenCalledTimes(2);
});

it('says again that it sleeps where it was told that something is leased', async () => {
  const { life, register } = open({ isShared: true });
  await life.load();
  await life.wake();
  register.call.mockResolvedValue('leased');
  await life.restart(giveBack);
  expect(life.state).toBe('asleep');
  register.call.mockClear();
  life.look();
  expect(register.call).toHaveBeenCalledOnce();
  register.call.mockResolvedValue('registered');
  await Promise.resolve();
  await Promise.resolve();
  life.look();
  await vi.waitFor(() => expect(register.call).toHaveBeenCalledTimes(2));
  await Promise.resolve();
  life.look();
  expect(register.call).toHaveBeenCalledTimes(2);
});

it('stops in a wake that fails: nothing is loaded any more', async () => {
  const { life, start } = open({ isShared: true });
  await life.load();
  start.mockImplementation(() => {
    life.stop();
    return Promise.reject(new Error('killed'));
  });
  expect(await life.wake()).toBe(false);
  expect(life.state).toBe('stopping');
  expect(start).toHaveBeenCalledOnce();
});

it('sleeps, if it is told to, while it cannot be loaded; who wakes it tries again', async () => {
  const { life, start } = open({ isShared: true });
  await life.load();
  start.mockRejectedValue(new Error('a bad file'));
  expect(await life.wake()).toBe(false);
  expect(life.state).toBe('loading');
  expect(await life.sleep()).toBe(true);
  expect(life.state).toBe('asleep');
  start.mockResolvedValue(card);
  expect(await life.wake()).toBe(true);
});

it('has done what a reload asks for that comes while it waits for room', async () => {
  const { life, take } = open({ isShared: true });
  await life.load();
  const release = take.hold();
  const waking = life.wake();
  await vi.waitFor(() => expect(take.call).toHaveBeenCalled());
  const reloading = life.reload();
  release();
  expect(await waking).toBe(true);
  expect(await reloading).toBe(true);
});

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

/** Nothing is to be given back. */
const giveBack = (): Promise<void> => Promise.resolve();

function open({ isShared = false, pauseMs = 20 }: { isShared?: boolean; pauseMs?: number } = {}) {
  let hasEngine = false;
  const refused = vi.fn<() => void>();
  // Like those there are, it runs one engine.
  const start = vi.fn<() => Promise<ModelCard>>(() => {
    if (!hasEngine) return Promise.resolve(card).finally(() => (hasEngine = true));
    refused();
    return Promise.reject(new Error('the engine is already running'));
  });
  const shutdown = (): Promise<void> => Promise.resolve(void (hasEngine = false));
  const executor = { start, shutdown } as unknown as Executor;
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
    retryMs: { firstMs: pauseMs, mostMs: pauseMs },
    log: silentLogger(),
  });
  const setBusy = (is: boolean): void => void (isBusy = is);
  const die = (until = giveBack()): Promise<void> => {
    hasEngine = false;
    return life.restart(() => until);
  };
  return { life, start, refused, die, register, take, loaded, free, setBusy };
}

it('is loaded anew where it is waked while it is told that the engine died in a vacate', async () => {
  const { life, start, die, register, setBusy } = open();
  await life.load();
  setBusy(true);
  const sleeping = life.sleep();
  await vi.waitFor(() => expect(life.state).toBe('vacating'));
  const release = register.hold();
  const restarting = die();
  const waking = life.wake();
  release();
  expect(await waking).toBe(true);
  await restarting;
  expect(await sleeping).toBe(false);
  expect(life.state).toBe('ready');
  expect(start).toHaveBeenCalledTimes(2);
});

it('is not ready with an engine that died while it was measured', async () => {
  const { life, start, die, loaded, free } = open({ isShared: true });
  await life.load();
  const release = loaded.hold();
  const waking = life.wake();
  await vi.waitFor(() => expect(loaded.call).toHaveBeenCalled());
  const restarting = die();
  release();
  expect(await waking).toBe(false);
  await restarting;
  expect(free).toHaveBeenCalled();
  await vi.waitFor(() => expect(life.state).toBe('ready'));
  expect(start).toHaveBeenCalledTimes(2);
});

it('says again that it sleeps where it was told that something is leased', async () => {
  const { life, die, register } = open({ isShared: true });
  await life.load();
  await life.wake();
  register.call.mockResolvedValue('leased');
  await die();
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

it('has one load loop where the engine dies while the system is told that one has loaded it', async () => {
  const { life, start, refused, die, register } = open();
  await life.load();
  const telling = register.hold();
  const first = die();
  telling();
  const ready = register.hold();
  await vi.waitFor(() => expect(life.state).toBe('ready'));
  const givingBack = holdable<void>(undefined);
  const givenBack = givingBack.hold();
  const second = die(givingBack.call());
  ready();
  await first;
  // Nothing is loaded beside what goes back.
  expect(life.state).toBe('loading');
  expect(start).toHaveBeenCalledTimes(2);
  givenBack();
  await second;
  expect(life.state).toBe('ready');
  expect(start).toHaveBeenCalledTimes(3);
  expect(refused).not.toHaveBeenCalled();
});

it('has no load loop beside who wakes it, where the engine dies while the system is told that one has loaded it', async () => {
  const { life, start, refused, die, register } = open({ isShared: true });
  await life.load();
  start.mockRejectedValueOnce(new Error('a bad file'));
  expect(await life.wake()).toBe(false);
  const ready = register.hold();
  await vi.waitFor(() => expect(life.state).toBe('ready'));
  const givingBack = holdable<void>(undefined);
  const givenBack = givingBack.hold();
  const dying = die(givingBack.call());
  ready();
  await new Promise(setImmediate);
  givenBack();
  await dying;
  expect(life.state).toBe('asleep');
  expect(await life.wake()).toBe(true);
  // Its pause ends after that of any loop that went on.
  await die();
  expect(start).toHaveBeenCalledTimes(3);
  expect(refused).not.toHaveBeenCalled();
});

it('leaves its room to others at once, and takes no leases for a while, where it dies of being loaded', async () => {
  const { life, die, free } = open({ isShared: true, pauseMs: 600_000 });
  await life.load();
  await life.wake();
  await die();
  expect(life.state).toBe('asleep');
  expect(await life.wake()).toBe(true);
  free.mockClear();
  const dying = die();
  await vi.waitFor(() => expect(free).toHaveBeenCalled());
  expect(life.state).toBe('loading');
  life.stop();
  await dying;
});

it('sleeps at once, if it is told to, in the pause before it is loaded again', async () => {
  const { life, start, register } = open({ pauseMs: 600_000 });
  await life.load();
  start.mockRejectedValue(new Error('a bad file'));
  const reloading = life.reload();
  await vi.waitFor(() => expect(start).toHaveBeenCalledTimes(2));
  // Once it is told that this failed, the pause begins.
  await vi.waitFor(() => expect(register.call).toHaveBeenCalledTimes(4));
  await new Promise(setImmediate);
  expect(await life.sleep()).toBe(true);
  expect(await reloading).toBe(true);
  expect(life.state).toBe('asleep');
  expect(start).toHaveBeenCalledTimes(2);
});

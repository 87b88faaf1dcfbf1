/** Events that arrive in the middle of another transition. test/integration covers the rest. */
import type { ModelCard } from '@darkroom/core';
import type { Executor } from '@darkroom/executor';
import { silentLogger } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import type { MemoryAllocation } from '../memory/memory-keeper.ts';
import { EngineLife, type EngineState } from './engine-life.ts';
import type { LoadWatch } from './load-watch.ts';

const card = { id: 'tiny' } as ModelCard;

const nothing = (): void => {};

/** A mocked call that resolves at once, or, after `hold()`, when the test releases it. */
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

/** Requeues nothing. */
const giveBack = (): Promise<void> => Promise.resolve();

/** Lets all transitions go on that wait for no timer and no held call. */
function flush(): Promise<void> {
  return new Promise(setImmediate);
}

interface OpenOptions {
  isShared?: boolean;
  pauseMs?: number;
  prepare?: () => Promise<void>;
}

function open({ isShared = false, pauseMs = 20, prepare }: OpenOptions = {}) {
  let hasEngine = false;
  const refused = vi.fn<() => void>();
  // Like the real executors, this one runs a single engine.
  const start = vi.fn<() => Promise<ModelCard>>(() => {
    if (!hasEngine) return Promise.resolve(card).finally(() => (hasEngine = true));
    refused();
    return Promise.reject(new Error('the engine is already running'));
  });
  const shutdown = (): Promise<void> => Promise.resolve(void (hasEngine = false));
  const executor = { start, shutdown } as unknown as Executor;
  const loads = { watch: (load: () => Promise<unknown>) => load() } as LoadWatch;
  const register = holdable<'registered' | 'leased'>('registered');
  const acquire = holdable(true);
  const loaded = holdable<void>(undefined);
  const free = vi.fn<() => void>();
  const allocation = { attach: nothing, reconcile: nothing, free, acquire: acquire.call, loaded: loaded.call };
  let isBusy = false;
  const life = new EngineLife({
    executor,
    loads,
    prepare,
    shared: isShared ? { allocation: { ...allocation, waitMs: 0 } as unknown as MemoryAllocation, card } : undefined,
    isBusy: () => isBusy,
    register: register.call,
    retryMs: { firstMs: pauseMs, maxMs: pauseMs },
    log: silentLogger(),
  });
  const setBusy = (is: boolean): void => void (isBusy = is);
  const die = (until = giveBack(), options: { isCausedByRequest?: boolean } = {}): void => {
    hasEngine = false;
    life.replaceLost(() => until, options);
  };
  return { life, start, refused, die, register, acquire, loaded, free, setBusy };
}

function reach({ life }: ReturnType<typeof open>, state: EngineState): Promise<void> {
  return vi.waitFor(() => expect(life.state).toBe(state));
}

it('loads the model again when a wake arrives while the loss of a vacating engine is being published', async () => {
  const bench = open();
  const { life, start, die, register, setBusy } = bench;
  await life.load();
  setBusy(true);
  life.sleep();
  await reach(bench, 'vacating');
  await flush();
  const release = register.hold();
  die();
  const waking = life.wake();
  release();
  expect(await waking).toBe(true);
  expect(life.state).toBe('ready');
  expect(start).toHaveBeenCalledTimes(2);
});

it('does not become ready when the engine dies while its memory is measured', async () => {
  const bench = open({ isShared: true });
  const { life, start, die, loaded, free } = bench;
  await life.load();
  const release = loaded.hold();
  const waking = life.wake();
  await vi.waitFor(() => expect(loaded.call).toHaveBeenCalled());
  die();
  release();
  expect(await waking).toBe(false);
  expect(free).toHaveBeenCalled();
  await reach(bench, 'ready');
  expect(start).toHaveBeenCalledTimes(2);
});

it('publishes the asleep state again after the registration reported leased requests', async () => {
  const bench = open({ isShared: true });
  const { life, die, register } = bench;
  await life.load();
  await life.wake();
  register.call.mockResolvedValue('leased');
  die();
  await reach(bench, 'asleep');
  await flush();
  register.call.mockClear();
  life.reconcile();
  expect(register.call).toHaveBeenCalledOnce();
  register.call.mockResolvedValue('registered');
  for (let ticks = 0; ticks < 3; ticks++) {
    await flush();
    life.reconcile();
  }
  expect(register.call).toHaveBeenCalledTimes(2);
});

it('loads nothing more when stopped during a failing wake', async () => {
  const { life, start } = open({ isShared: true });
  await life.load();
  start.mockImplementation(() => {
    life.stop();
    return Promise.reject(new Error('killed'));
  });
  expect(await life.wake()).toBe(false);
  await flush();
  expect(life.state).toBe('stopping');
  expect(start).toHaveBeenCalledOnce();
});

it('asks for no memory while the files were replaced', async () => {
  const prepare = vi.fn<() => Promise<void>>().mockRejectedValueOnce(new Error('the files were replaced'));
  const bench = open({ isShared: true, prepare });
  const { life, acquire } = bench;
  await life.load();
  expect(await life.wake()).toBe(false);
  expect(acquire.call).not.toHaveBeenCalled();
  await reach(bench, 'ready');
  expect(acquire.call).toHaveBeenCalledOnce();
});

it('sleeps on command while the model cannot be loaded, and a later wake loads it', async () => {
  const bench = open({ isShared: true });
  const { life, start } = bench;
  await life.load();
  start.mockRejectedValue(new Error('a bad file'));
  expect(await life.wake()).toBe(false);
  expect(life.state).toBe('loading');
  life.sleep();
  await reach(bench, 'asleep');
  start.mockResolvedValue(card);
  expect(await life.wake()).toBe(true);
});

it('runs a single load loop when the engine dies while its ready state is being published', async () => {
  const bench = open();
  const { life, start, refused, die, register } = bench;
  await life.load();
  const telling = register.hold();
  die();
  telling();
  const ready = register.hold();
  await reach(bench, 'ready');
  const givingBack = holdable<void>(undefined);
  const givenBack = givingBack.hold();
  die(givingBack.call());
  ready();
  await flush();
  // Nothing is loaded until the requests are requeued.
  expect(life.state).toBe('loading');
  expect(start).toHaveBeenCalledTimes(2);
  givenBack();
  await reach(bench, 'ready');
  expect(start).toHaveBeenCalledTimes(3);
  expect(refused).not.toHaveBeenCalled();
});

it('runs no load loop beside a wake when the engine dies while its ready state is being published', async () => {
  const bench = open({ isShared: true });
  const { life, start, refused, die, register } = bench;
  await life.load();
  start.mockRejectedValueOnce(new Error('a bad file'));
  expect(await life.wake()).toBe(false);
  const ready = register.hold();
  await reach(bench, 'ready');
  const givingBack = holdable<void>(undefined);
  const givenBack = givingBack.hold();
  die(givingBack.call());
  ready();
  await flush();
  givenBack();
  await reach(bench, 'asleep');
  expect(await life.wake()).toBe(true);
  // The pause of this loss ends after the pause of any load loop that kept running.
  die();
  await reach(bench, 'asleep');
  expect(start).toHaveBeenCalledTimes(3);
  expect(refused).not.toHaveBeenCalled();
});

it('loads without a pause when requests crash the engine, and with a pause when it dies idle', async () => {
  const { life, start, die } = open({ pauseMs: 600_000 });
  await life.load();
  const ready = (loads: number): Promise<void> =>
    vi.waitFor(() => expect([life.state, start.mock.calls.length]).toEqual(['ready', loads]));
  for (let times = 1; times <= 5; times++) {
    die(undefined, { isCausedByRequest: true });
    await ready(times + 1);
  }
  // The first idle loss has no pause either; crashes caused by requests do not count.
  die();
  await ready(7);
  die();
  await flush();
  expect([life.state, start.mock.calls.length]).toEqual(['loading', 7]);
  life.stop();
});

it('frees its memory at once and takes no leases during the pause when the engine dies right after a load', async () => {
  const bench = open({ isShared: true, pauseMs: 600_000 });
  const { life, die, free } = bench;
  await life.load();
  await life.wake();
  die();
  await reach(bench, 'asleep');
  expect(await life.wake()).toBe(true);
  free.mockClear();
  die();
  await vi.waitFor(() => expect(free).toHaveBeenCalled());
  expect(life.state).toBe('loading');
  life.stop();
});

it('sleeps at once on command during the pause before the next load', async () => {
  const bench = open({ pauseMs: 600_000 });
  const { life, start, die } = bench;
  await life.load();
  start.mockRejectedValue(new Error('a bad file'));
  die();
  await vi.waitFor(() => expect(start).toHaveBeenCalledTimes(2));
  await flush();
  life.sleep();
  await reach(bench, 'asleep');
  expect(start).toHaveBeenCalledTimes(2);
});

it('sleeps at once on command during a load that then fails', async () => {
  const bench = open({ pauseMs: 600_000 });
  const { life, start, die } = bench;
  await life.load();
  // The second load of a series of failures has a pause.
  start.mockRejectedValueOnce(new Error('a bad file')).mockImplementationOnce(() => {
    life.sleep();
    return Promise.reject(new Error('a bad file'));
  });
  die(undefined, { isCausedByRequest: true });
  await reach(bench, 'asleep');
  expect(start).toHaveBeenCalledTimes(3);
});

it('loads for a request although a sleep arrives during the load, and sleeps when the request has ended', async () => {
  const bench = open({ isShared: true });
  const { life, loaded, setBusy } = bench;
  await life.load();
  setBusy(true);
  const release = loaded.hold();
  const waking = life.wake({ isExplicit: false });
  await vi.waitFor(() => expect(loaded.call).toHaveBeenCalled());
  life.sleep();
  release();
  expect(await waking).toBe(true);
  await reach(bench, 'vacating');
  setBusy(false);
  life.reconcile();
  await reach(bench, 'asleep');
});

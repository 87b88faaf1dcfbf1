import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../logging/logger.ts';
import { PeriodicLoop, type PeriodicLoopOptions } from './periodic-loop.ts';

/** Starts a loop with an hour between ticks, so that nothing here depends on time. */
async function startLoop(options: Partial<PeriodicLoopOptions> & Pick<PeriodicLoopOptions, 'runOnce'>) {
  const lines: string[] = [];
  const log = createLogger({ app: 'test', stream: { write: (line) => void lines.push(line) } });
  const loop = new PeriodicLoop({ name: 'sweep', intervalMs: 3_600_000, log, ...options });
  onTestFinished(() => loop.stop());
  await loop.start();
  return { loop, lines };
}

describe('PeriodicLoop', () => {
  it('runs a tick at the start and for each trigger', async () => {
    let turns = 0;
    const { loop } = await startLoop({ runOnce: async () => ++turns });
    expect(turns).toBe(1);
    await loop.trigger();
    await loop.trigger();
    expect(turns).toBe(3);
  });

  it('runs the next tick after its interval', async () => {
    let count = 0;
    await new Promise<void>((resolve) => {
      void startLoop({
        intervalMs: 0,
        runOnce: async () => {
          if (++count === 3) resolve();
        },
      });
    });
    expect(count).toBeGreaterThanOrEqual(3);
  });

  it('runs another full tick after a trigger during a tick', async () => {
    const gate = openable();
    let begun = 0;
    const { loop } = await startLoop({
      runOnce: async () => {
        if (++begun === 1) await gate.opened;
      },
    });
    const triggered = loop.trigger();
    expect(begun).toBe(1);
    gate.open();
    await triggered;
    expect(begun).toBe(2);
  });

  it('logs a failed tick and continues', async () => {
    let turns = 0;
    const { loop, lines } = await startLoop({
      runOnce: async () => {
        if (++turns === 1) throw new Error('Redis is away');
      },
    });
    await loop.trigger();
    expect(turns).toBe(2);
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 'error',
      loop: 'sweep',
      err: { message: 'Redis is away' },
    });
  });

  it('aborts the current tick on a stop and waits for it', async () => {
    const gate = openable();
    let isFinished = false;
    const aborted = openable();
    const { loop } = await startLoop({
      runOnce: async (signal) => {
        signal.addEventListener('abort', aborted.open);
        await gate.opened;
        isFinished = true;
      },
    });
    const stopped = loop.stop();
    await aborted.opened;
    expect(isFinished).toBe(false);
    gate.open();
    await stopped;
    expect(isFinished).toBe(true);
  });

  it('resolves pending triggers when it stops', async () => {
    const gate = openable();
    const { loop } = await startLoop({ runOnce: () => gate.opened });
    const triggered = loop.trigger();
    const stopped = loop.stop();
    gate.open();
    await Promise.all([triggered, stopped]);
    await expect(loop.trigger()).resolves.toBeUndefined();
  });
});

function openable(): { opened: Promise<void>; open: () => void } {
  let open: (() => void) | undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open?.() };
}

import { expect, onTestFinished, vi } from 'vitest';

/**
 * Fakes the timers of the API's Redis timeouts for a test, so that a busy machine does not trigger them. Returns a
 * function that advances them by `waitMs` repeatedly until a promise settles.
 */
export function holdRedisTimeout(waitMs: number): <Answer>(answering: Promise<Answer>) => Promise<Answer> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  return async (answering) => {
    let isOver = false;
    const over = (): void => void (isOver = true);
    answering.then(over, over);
    await expect
      .poll(() => {
        vi.advanceTimersByTime(waitMs);
        return isOver;
      })
      .toBe(true);
    return answering;
  };
}

import { expect, onTestFinished, vi } from 'vitest';

/**
 * Until the test is over, an API's patience with Redis ends when the test says so, not when the machine has other
 * things to do. The result lets `waitMs` go by, again and again, until there is an answer.
 */
export function holdPatience(waitMs: number): <Answer>(answering: Promise<Answer>) => Promise<Answer> {
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

import { expect, it } from 'vitest';
import { PromptBudget, SplitCall } from './model-calls.ts';

/** Creates a call whose parts take these times on a fake clock. */
function callOf(partsMs: readonly number[]) {
  let atMs = 0;
  let isOver = false;
  async function* run(): AsyncGenerator<void, readonly Float32Array[]> {
    try {
      for (const [at, ms] of partsMs.entries()) {
        atMs += await Promise.resolve(ms);
        if (at < partsMs.length - 1) yield;
      }
      return [Float32Array.of(1)];
    } finally {
      isOver = true;
    }
  }
  const call = new SplitCall(['row'], run(), { tokens: 3, clock: () => atMs });
  return { call, atMs: () => atMs, isOver: () => isOver };
}

it('runs parts while another one fits into the time limit', async () => {
  const { call, atMs } = callOf([4, 4, 4, 4, 9, 1]);
  const steps: number[] = [];
  for (let logits: unknown; logits === undefined; steps.push(atMs())) logits = await call.advance(10);
  // Two of 4 ms; two more; one of 9 ms, after which no such part fits; the last.
  expect(steps).toEqual([8, 16, 25, 26]);
  expect([call.partMs, call.takenMs, call.tokens]).toEqual([26 / 6, 26, 3]);
});

it('runs at least one part, and all without a limit', async () => {
  const { call, atMs } = callOf([50, 50, 50]);
  expect(await call.advance(10)).toBeUndefined();
  expect(atMs()).toBe(50);
  expect(await call.advance(Infinity)).toEqual([Float32Array.of(1)]);
});

it('releases its resources when it is dropped', async () => {
  const { call, isOver } = callOf([50, 50, 50]);
  await call.advance(10);
  expect(isOver()).toBe(false);
  await call.drop();
  expect(isOver()).toBe(true);
});

/** Simulates reading steps that take `msPerToken` per token plus `callMs`; returns the token budgets. */
function budgetsOf({
  maxTokens,
  msPerToken,
  callMs,
  writeMs,
}: Record<'maxTokens' | 'msPerToken' | 'callMs' | 'writeMs', number>) {
  const budget = new PromptBudget(maxTokens);
  return Array.from({ length: 40 }, () => {
    const { tokens } = budget;
    budget.recordWriting(writeMs);
    budget.recordReading(callMs + tokens * msPerToken);
    return tokens;
  });
}

it('adapts the budget to the duration of a writing step', () => {
  const later = budgetsOf({ maxTokens: 1000, msPerToken: 0.1, callMs: 1, writeMs: 6 }).slice(20);
  // At 6 ms, 50 tokens fit.
  expect(Math.max(...later)).toBeLessThanOrEqual(50 + 8);
  expect(Math.min(...later)).toBeGreaterThanOrEqual(25);
});

it('stays between its min and its max', () => {
  expect(budgetsOf({ maxTokens: 64, msPerToken: 10, callMs: 1, writeMs: 6 }).at(-1)).toBe(8);
  expect(budgetsOf({ maxTokens: 64, msPerToken: 0, callMs: 1, writeMs: 6 }).at(-1)).toBe(64);
  expect(budgetsOf({ maxTokens: 4, msPerToken: 0, callMs: 1, writeMs: 6 })[0]).toBe(4);
});

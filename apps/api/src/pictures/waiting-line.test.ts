import { expect, it } from 'vitest';
import { createWaitingLine } from './waiting-line.ts';

it('lets in as many as there is room for, and the others in their order', async () => {
  const line = createWaitingLine(10);
  const entered: string[] = [];
  const enter = async (name: string, amount: number): Promise<() => void> => {
    const leave = await line.take(amount);
    entered.push(name);
    return leave;
  };
  const first = await enter('first', 6);
  const large = enter('large', 8);
  const small = enter('small', 2);
  // Also what would find room: else who needs much would wait for ever.
  await Promise.resolve();
  expect(entered).toEqual(['first']);
  first();
  first();
  const [leaveLarge] = await Promise.all([large, small]);
  expect(entered).toEqual(['first', 'large', 'small']);
  const all = enter('all of it and more', 99);
  leaveLarge();
  (await small)();
  await all;
  expect(entered).toHaveLength(4);
});

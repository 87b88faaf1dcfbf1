import { expect, it } from 'vitest';
import { createWaitingLine, type LetGo, type Waiter, type WaitingLine } from './waiting-line.ts';

const never = new AbortController().signal;
const anybody: Waiter = { owner: '', signal: never };
const day = 86_400_000;

/** Who has entered, in order. */
function watch(line: WaitingLine) {
  const entered: string[] = [];
  const enter = async (name: string, amount: number, waiter = anybody): Promise<LetGo> => {
    const letGo = await line.take(amount, waiter);
    entered.push(name);
    return letGo;
  };
  return { entered, enter };
}

it('lets in as many as there is room for, and the others in their order', async () => {
  const { entered, enter } = watch(createWaitingLine({ room: 10, limitMs: day }));
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

it('gives to others what somebody no longer needs of his room, once', async () => {
  const { entered, enter } = watch(createWaitingLine({ room: 10, limitMs: day }));
  const first = await enter('first', 10);
  const next = enter('next', 7);
  first(4);
  await Promise.resolve();
  expect(entered).toEqual(['first']);
  first(3);
  await next;
  // It has no more than that to give back, and gets none of it again.
  first(8);
  first();
  first();
  const last = enter('last', 4);
  await Promise.resolve();
  expect(entered).toEqual(['first', 'next']);
  (await next)();
  await last;
});

it('keeps a part for others, whatever one owner asks for, and each owner in its own order', async () => {
  const { entered, enter } = watch(createWaitingLine({ room: 10, perOwner: 5, limitMs: day }));
  const [alice, bob] = ['alice', 'bob'].map((owner) => ({ owner, signal: never }));
  const first = await enter('alice, all of it', 99, alice);
  const second = enter('alice, more', 4, alice);
  const third = enter('alice, little', 1, alice);
  await enter('bob', 5, bob);
  expect(entered).toEqual(['alice, all of it', 'bob']);
  first(1);
  await second;
  expect(entered.at(-1)).toBe('alice, more');
  first();
  await third;
});

it('ends a wait that takes too long, or that nobody waits for, and who stood behind moves up', async () => {
  const line = createWaitingLine({ room: 10, limitMs: 20 });
  const leave = await line.take(8, anybody);
  await expect(line.take(4, anybody)).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '5' } });
  const client = new AbortController();
  const gone = line.take(4, { owner: '', signal: client.signal });
  const behind = line.take(2, anybody);
  client.abort();
  await expect(gone).rejects.toMatchObject({ code: 'client_gone' });
  (await behind)();
  await expect(line.take(1, { owner: '', signal: client.signal })).rejects.toMatchObject({ code: 'client_gone' });
  leave();
  (await line.take(10, anybody))();
});

it('lets nobody wait who has room already', async () => {
  const line = createWaitingLine({ room: 10, limitMs: day });
  const holding = { ...anybody, isHolding: true };
  const leave = await line.take(6, holding);
  await expect(line.take(6, holding)).rejects.toMatchObject({ status: 503 });
  (await line.take(4, holding))();
  leave();
  (await line.take(10, anybody))();
});

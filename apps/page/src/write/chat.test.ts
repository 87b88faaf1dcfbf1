import { expect, it } from 'vitest';
import { restartFrom, messagesOf, openTurn, type Turn, withEnd } from './chat.ts';

const turn = (key: string, more: Partial<Turn> = {}): Turn => ({
  key,
  wish: `wish ${key}`,
  model: 'm',
  seed: 1,
  ...more,
});
const done = (key: string, answer: string): Turn => turn(key, { id: `id-${key}`, outcome: 'succeeded', answer });

function keys(): () => string {
  let count = 0;
  return () => `new-${count++}`;
}

it('sends the model all answered turns before', () => {
  const stopped = turn('b', { outcome: 'canceled', answer: '' });
  const turns = [done('a', 'a cat'), stopped, turn('c'), turn('d')];
  expect(messagesOf(turns, turns[2]!)).toEqual([
    { role: 'user', content: 'wish a' },
    { role: 'assistant', content: 'a cat' },
    { role: 'user', content: 'wish c' },
  ]);
});

it("omits the oldest turns if the model's context is full", () => {
  const turns = [done('a', 'a cat'), done('b', 'a dog'), turn('c', { leftOut: 1 })];
  expect(messagesOf(turns, turns[2]!).map(({ content }) => content)).toEqual(['wish b', 'a dog', 'wish c']);
  expect(messagesOf(turns, { ...turns[2]!, leftOut: 2 }).map(({ content }) => content)).toEqual(['wish c']);
});

it('restarts from a changed turn with new keys, and preserves earlier turns', () => {
  const turns = [done('a', 'a cat'), done('b', 'a blue cat'), turn('c', { outcome: 'failed', temperature: 1 })];
  const input = { key: 'edited', wish: 'make it red', model: 'm', seed: 7 };
  expect(restartFrom(turns, 'b', input, keys())).toEqual([
    turns[0],
    input,
    { key: 'new-0', wish: 'wish c', model: 'm', seed: 1, temperature: 1 },
  ]);
  // Another tab has removed the turn.
  expect(restartFrom(turns, 'z', input, keys())).toEqual(turns);
});

it('continues with the next turn after a success only', () => {
  const turns = [done('a', 'a cat'), turn('b', { id: 'id-b' }), turn('c')];
  expect(openTurn(turns)?.key).toBe('b');
  const well = withEnd(turns, 'b', { outcome: 'succeeded', answer: 'a dog' });
  expect([well[1]?.answer, openTurn(well)?.key]).toEqual(['a dog', 'c']);
  const badly = withEnd(turns, 'b', { outcome: 'canceled', answer: 'a' });
  expect([badly.map(({ outcome }) => outcome), openTurn(badly)]).toEqual([
    ['succeeded', 'canceled', 'unasked'],
    undefined,
  ]);
  // The conversation was cleared in the meantime.
  expect(withEnd([turn('x')], 'b', { outcome: 'failed' })).toEqual([turn('x')]);
});

import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import { RowText } from './row-text.ts';

const { codec } = await readTextModelDirectory(resolve(import.meta.dirname, '../../../../models/emoji-writer'));
const ids = codec.encode('a red red red apple on a tree', { addSpecialTokens: false });

/** Returns the deltas: text, token ids and logprobs. */
function write(stop: string[]) {
  const written = new RowText({ request: { stop, ignoreEos: false, limit: ids.length }, codec, endIds: [] });
  const deltas: [text: string, ids: string, logprobs: unknown][] = [];
  for (const id of ids) {
    if (written.end !== undefined) break;
    written.push(id, `${id};`);
    const delta = written.takeDelta();
    if (delta !== undefined) deltas.push([delta.text, String(delta.facts!['ids']), delta.facts!['logprobs']]);
  }
  return { deltas, text: written.text };
}

it('emits each token with its text, and none of an actual or possible stop string', () => {
  const [a, red, , , ...rest] = ids as [number, number, number, number, ...number[]];
  expect(ids.slice(0, 4)).toEqual([a, red, red, red]);
  const { deltas, text } = write([' red red apple']);
  expect(text).toBe('a red');
  expect(deltas).toEqual([
    ['a', `${a},`, `${a};`],
    [' red', `${red},`, `${red};`],
  ]);
  const others = write([' red red apples']).deltas;
  expect(others.map(([piece]) => piece).join('')).toBe('a red red red apple on a tree');
  expect(others.map(([, deltas]) => deltas).join('')).toBe([a, red, red, red, ...rest].map((id) => `${id},`).join(''));
});

import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import { WrittenText } from './written-text.ts';

const { codec } = await readTextModelDirectory(resolve(import.meta.dirname, '../../../../models/emoji-writer'));
const ids = codec.encode('a red red red apple on a tree', { addSpecialTokens: false });

/** What is said after each token: text and tokens. */
function write(stop: string[]) {
  const written = new WrittenText({ request: { stop, ignoreEos: false, limit: ids.length }, codec, endIds: [] });
  const said: [text: string, ids: string, logprobs: unknown][] = [];
  for (const id of ids) {
    if (written.end !== undefined) break;
    written.push(id, `${id};`);
    const delta = written.takeDelta();
    if (delta !== undefined) said.push([delta.text, String(delta.facts!['ids']), delta.facts!['logprobs']]);
  }
  return { said, text: written.text };
}

it('says each token with its text: none of a stop text, nor of what may become one', () => {
  const [a, red, , , ...rest] = ids as [number, number, number, number, ...number[]];
  expect(ids.slice(0, 4)).toEqual([a, red, red, red]);
  const { said, text } = write([' red red apple']);
  expect(text).toBe('a red');
  expect(said).toEqual([
    ['a', `${a},`, `${a};`],
    [' red', `${red},`, `${red};`],
  ]);
  const others = write([' red red apples']).said;
  expect(others.map(([piece]) => piece).join('')).toBe('a red red red apple on a tree');
  expect(others.map(([, said]) => said).join('')).toBe([a, red, red, red, ...rest].map((id) => `${id},`).join(''));
});

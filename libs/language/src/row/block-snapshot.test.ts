import { resolve } from 'node:path';
import { expect, it } from 'vitest';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import { RowText } from './row-text.ts';

it('the snapshot of a block has no ids behind a stop string or an end token', async () => {
  const directory = resolve(import.meta.dirname, '../../../../models/emoji-writer-diffusion');
  const { codec } = await readTextModelDirectory(directory);
  const request = { stop: [' on'], ignoreEos: false, limit: 24 };
  const written = new RowText({ request, codec, endIds: [2] });
  const snapshotOf = (block: number[]) => written.snapshot(block, { calls: 1, maskId: 3 });
  const ids = codec.encode('a cake on background', { addSpecialTokens: false });
  const [a, cake, on, background] = ids as [number, number, number, number];
  const stopped = snapshotOf([a, cake, on, background, -1]);
  expect(stopped).toMatchObject({ type: 'snapshot', offset: 0, text: 'a cake' });
  expect(stopped.facts!['ids']).not.toContain(`${background},`);
  expect(snapshotOf([a, 2, cake, -1])).toMatchObject({ text: 'a', facts: { ids: `${a},` } });
});

import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TextCard } from '@darkroom/kinds';
import { expect, it, onTestFinished } from 'vitest';
import type { CapacityLimits } from '../../engine-kind.ts';
import { textEngine } from './text-engine.ts';

const writer = resolve(import.meta.dirname, '../../../../../models/emoji-writer');

function capacityOf(changes: Partial<CapacityLimits> = {}, { maxModelTokens = 100, weightBytes = 1e9 } = {}) {
  const card = { kind: 'text', maxModelTokens } as TextCard;
  const limits = { batchMaxSize: 8, availableBytes: 1e9, ...changes };
  const capacity = textEngine.capacity({ card, files: [], weightBytes, slotBytes: 1000, notes: [] }, limits);
  const { slots, memorySlots, threads } = capacity;
  return [slots, memorySlots, (capacity.card as TextCard).maxModelTokens, threads];
}

it('counts tokens: batch size times length, limited by memory, at least one short text', () => {
  expect(capacityOf()).toEqual([800, 250_000, 100, undefined]);
  expect(capacityOf({ availableBytes: 1_200_000 })).toEqual([300, 300, 100, undefined]);
  expect(capacityOf({ availableBytes: 0 })).toEqual([100, 100, 100, undefined]);
});

it('limits the length of texts to the capacity', () => {
  expect(capacityOf({ kvTokens: 42 })).toEqual([42, 42, 42, undefined]);
  const large = { maxModelTokens: 131_072 };
  expect(capacityOf({ availableBytes: 4_000_000 }, large)).toEqual([1000, 1000, 1000, undefined]);
  expect(capacityOf({ availableBytes: 0 }, large)).toEqual([256, 256, 256, undefined]);
});

it('encodes a text as UTF-8', async () => {
  const data = Buffer.from('a text');
  const encoded = await textEngine.encode({ data, facts: {} }, { model: 'writer', input: { prompt: [1] } });
  expect(encoded).toEqual({ data, contentType: 'text/plain; charset=utf-8' });
});

it('runs small weights on one thread', () => expect(capacityOf({}, { weightBytes: 1e6 })[3]).toBe(1));

async function notesOf(directory: string) {
  return (await textEngine.describe({ directory, id: 'writer' })).notes;
}

it('warns that the chat template rejects every message, with the reason', async () => {
  const found = { level: 'info', message: 'text model found', fields: { mode: 'autoregressive' } };
  expect(await notesOf(writer)).toMatchObject([found]);
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-model-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await cp(writer, directory, { recursive: true });
  const file = join(directory, 'tokenizer_config.json');
  const config = JSON.parse(await readFile(file, 'utf8')) as object;
  const chat_template = "{{ raise_exception('roles must alternate') }}";
  await writeFile(file, JSON.stringify({ ...config, chat_template }));
  expect((await notesOf(directory))[1]).toEqual({
    level: 'warn',
    message: 'the chat template rejects every message: chat requests will fail',
    fields: { reason: "messages: the model's template does not take them: roles must alternate" },
  });
});

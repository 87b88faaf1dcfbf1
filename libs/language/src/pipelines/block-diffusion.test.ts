/** Tests emoji-writer-diffusion against Python with the same weights: tools/golden/record-text-blocks.py. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { textAfter } from '@darkroom/core';
import { maskText, type TextInput } from '@darkroom/kinds';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import { writeInBatches, randomInput, textInput, type TextResult, TextTable } from '../testing/text-table.ts';
import { loadTextPipeline } from './load-text-pipeline.ts';
import type { TextPipeline } from './text-pipeline.ts';

interface Case {
  prompt: number[];
  threshold: number;
  tokensPerCall: number;
  limit: number;
  tokens: number[];
  calls: number;
  text: string;
  /** The block after each call; 3 for a masked token. */
  blocks: number[][];
}

const root = resolve(import.meta.dirname, '../../../..');
const directory = resolve(root, 'models/emoji-writer-diffusion');
const vectors = resolve(root, 'tools/golden/vectors/emoji-writer-diffusion-greedy.json');
const { cases } = JSON.parse(readFileSync(vectors, 'utf8')) as { cases: Case[] };
const { codec } = await readTextModelDirectory(directory);
const [end, mask] = [2, 3];
const wish = cases[0]!.prompt;

let pipeline: TextPipeline;
beforeAll(async () => {
  pipeline = await loadTextPipeline({ directory, threads: 1, stepTokens: 64 });
});
afterAll(() => pipeline.dispose());

function inputOfCase({ prompt, threshold, tokensPerCall, limit }: Case): TextInput {
  const how = tokensPerCall === 0 ? { confidenceThreshold: threshold } : { tokensPerCall };
  return textInput({ prompt, maxTokens: limit, ...how });
}

const snapshotsOf = (events: Awaited<ReturnType<TextTable['write']>>['events']) =>
  events.flatMap((event) => (event.type === 'snapshot' ? [event] : []));
const idsOf = (ids: unknown) => (ids as string).split(',').filter(Boolean).map(Number);

describe('greedy text', () => {
  it('equals that of Python, block by block, alone', async () => {
    for (const each of cases) {
      const { tokens, text, facts, events } = await new TextTable(pipeline).write(inputOfCase(each));
      expect({ tokens, text, calls: facts.calls }).toEqual({ tokens: each.tokens, text: each.text, calls: each.calls });
      const blocks = each.blocks.map((block) => block.slice(0, block.includes(end) ? block.indexOf(end) : undefined));
      expect(snapshotsOf(events).map((snapshot) => idsOf(snapshot.facts!['ids']))).toEqual(blocks);
    }
  });

  it('equals it in a batch', async () => {
    const table = new TextTable(pipeline);
    for (const [at, each] of cases.entries()) {
      await table.join(`${at}`, inputOfCase(each));
      if (at % 2 === 0) await table.tick();
    }
    await table.run();
    expect(cases.map((_, at) => table.results.get(`${at}`)!.tokens)).toEqual(cases.map(({ tokens }) => tokens));
  });
});

const inputOf = (at: number): TextInput => {
  const input = randomInput(at, wish);
  if (at % 4 === 0) return { ...input, tokensPerCall: 1 + (at % 3) };
  return at % 4 === 1 ? { ...input, maxCalls: 1 + (at % 9) } : { ...input, confidenceThreshold: 0.3 + 0.1 * (at % 7) };
};

describe('rows', () => {
  it('have the same bytes in any batch as alone, and from every checkpoint', async () => {
    const alone: TextResult[] = [];
    for (let at = 0; at < 40; at++) alone.push(await new TextTable(pipeline).write(inputOf(at)));
    for (let round = 0; round < 2; round++) {
      const together = await writeInBatches(pipeline, { seed: round, inputOf, alone });
      expect(together.map(({ output, tokens }) => ({ output, tokens }))).toEqual(
        alone.map(({ output, tokens }) => ({ output, tokens })),
      );
    }
  });

  it('resume from a checkpoint within a block, without counting calls twice', async () => {
    const input = textInput({ prompt: wish, temperature: 1, seed: 3, maxTokens: 40, ignoreEos: true });
    const whole = await new TextTable(pipeline).write(input);
    expect(whole.checkpoints.length).toBeGreaterThan(10);
    for (const checkpoint of whole.checkpoints) {
      const { events, output } = await new TextTable(pipeline).write(input, checkpoint);
      expect(output).toEqual(whole.output);
      const { type, done } = events[0] as { type: string; done: number };
      expect([type, done >= checkpoint.done]).toEqual(['progress', true]);
    }
  });

  it('share a call in different blocks and at different noise levels', async () => {
    const table = new TextTable(pipeline);
    const input = textInput({ prompt: wish, ignoreEos: true, maxTokens: 24 });
    await table.join('first', { ...input, confidenceThreshold: 1 });
    for (let tick = 0; tick < 6; tick++) await table.tick();
    await table.join('second', { ...input, tokensPerCall: 1 });
    await table.run();
    const shared = table.calls.filter(({ names }) => names.length === 2);
    expect(shared.length).toBeGreaterThan(3);
    expect(shared.every(({ shape }) => shape === 'write')).toBe(true);
  });
});

describe('a text', () => {
  it('changes only within its current block', async () => {
    const input = textInput({ prompt: wish, ignoreEos: true, maxTokens: 20 });
    const { events, text, tokens, facts } = await new TextTable(pipeline).write(input);
    const snapshots = snapshotsOf(events);
    expect(snapshots.reduce((before, snapshot) => textAfter(before, snapshot), '')).toBe(text);
    const settled = snapshots.filter((snapshot) => snapshot.facts!['settled'] === 1);
    expect(settled.map((snapshot) => snapshot.text).join('')).toBe(text);
    expect(settled.flatMap((snapshot) => idsOf(snapshot.facts!['ids']))).toEqual(tokens);
    expect([settled.length, tokens.length, facts.finish_reason]).toEqual([3, 20, 'length']);
    for (const snapshot of snapshots) {
      const masks = idsOf(snapshot.facts!['ids']).filter((id) => id === mask).length;
      expect(snapshot.text.split(maskText)).toHaveLength(masks + 1);
    }
    // Each block but the last is reread once after its last call.
    const calls = snapshots.map((snapshot) => snapshot.facts!['calls'] as number);
    expect(calls).toEqual(calls.toSorted((left, right) => left - right));
    expect(calls.at(-1)).toBe(facts.calls);
    // The number of known tokens never decreases, and includes all tokens at the end of a block.
    const done = snapshots.map((snapshot) => snapshot.done!);
    expect(done).toEqual(done.toSorted((left, right) => left - right));
    expect(settled.map((snapshot) => snapshot.done)).toEqual([8, 16, 20]);
    expect(facts.calls).toBe(snapshots.length + 2);
  });

  it('unmasks at least one token per call, and all above the threshold', async () => {
    const strict = await new TextTable(pipeline).write(textInput({ prompt: wish, confidenceThreshold: 1 }));
    expect(strict.facts.calls).toBeGreaterThanOrEqual(strict.tokens.length);
    const easy = await new TextTable(pipeline).write(textInput({ prompt: wish, confidenceThreshold: 0 }));
    expect(easy.facts.calls).toBe(1);
  });

  it('never contains the mask token', async () => {
    const input = textInput({
      prompt: wish,
      temperature: 2,
      maxTokens: 60,
      ignoreEos: true,
      logitBias: { [mask]: 100 },
    });
    expect((await new TextTable(pipeline).write(input)).tokens).not.toContain(mask);
  });

  it.each([1, 2, 3, 5, 8])('takes at most %i calls', async (maxCalls) => {
    const input = textInput({ prompt: wish, maxCalls, confidenceThreshold: 1, ignoreEos: true, maxTokens: 30 });
    const { facts, text, events } = await new TextTable(pipeline).write(input);
    expect(facts).toMatchObject({ calls: maxCalls, finish_reason: 'length' });
    expect(snapshotsOf(events).reduce((before, at) => textAfter(before, at), '')).toBe(text);
    expect(text).not.toContain(maskText);
  });

  it('ends before a stop string, and keeps none of it', async () => {
    const whole = await new TextTable(pipeline).write(textInput({ prompt: wish }));
    const stop = whole.text.slice(6, 12);
    const { text, facts, events } = await new TextTable(pipeline).write(textInput({ prompt: wish, stop: [stop] }));
    expect(text).toBe(whole.text.slice(0, whole.text.indexOf(stop)));
    expect(facts).toMatchObject({ finish_reason: 'stop', stop });
    expect(snapshotsOf(events).at(-1)).toMatchObject({ text });
    for (const snapshot of snapshotsOf(events)) expect(snapshot.text).not.toContain(stop);
  });

  it('emits no token of a stop string that spans two blocks', async () => {
    const input = textInput({ prompt: wish, ignoreEos: true, maxTokens: 20 });
    const whole = await new TextTable(pipeline).write(input);
    const border = codec.decode(whole.tokens.slice(0, 8)).length;
    const stop = whole.text.slice(border - 3, border + 3);
    const before = whole.text.slice(0, whole.text.indexOf(stop));
    const { events, text } = await new TextTable(pipeline).write({ ...input, stop: [stop] });
    expect(text).toBe(before);
    const settled = snapshotsOf(events).filter((snapshot) => snapshot.facts!['settled'] === 1);
    const ids = settled.flatMap((snapshot) => idsOf(snapshot.facts!['ids']));
    expect(codec.decode(ids.slice(0, -1)).length).toBeLessThan(text.length);
    expect(ids).toEqual(whole.tokens.slice(0, ids.length));
    expect(codec.decode(ids)).toContain(text);
    expect(settled.at(-1)!.done).toBe(ids.length);
  });

  it('rejects logprobs', async () => {
    await expect(pipeline.createRows({ id: 'a', input: textInput({ prompt: wish, logprobs: 0 }) })).rejects.toThrow(
      'logprobs: not available for block diffusion models',
    );
  });

  it('equals its decoded tokens', async () => {
    const { text, tokens } = await new TextTable(pipeline).write(textInput({ prompt: wish }));
    expect(codec.decode(tokens)).toBe(text);
  });
});

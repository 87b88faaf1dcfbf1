/** Many concurrent text streams on one API. */
import { join } from 'node:path';
import { loadTextPipeline } from '@darkroom/language';
import { expect, it } from 'vitest';
import { RandomNumbers } from '../../libs/language/src/sampling/random-numbers.ts';
import { textInput, TextTable } from '../../libs/language/src/testing/text-table.ts';
import { openSystem, longWorkerTtl, type System } from '../e2e/system.ts';
import { readTextFrames, type TextFrame } from '../e2e/text-frames.ts';
import { postJson } from '../e2e/client.ts';

const models = ['emoji-writer', 'emoji-writer-diffusion'] as const;
/** A busy machine writes slowly, ms. */
const timeout = 300_000;
const root = new URL('../../', import.meta.url).pathname;

interface Body {
  model: string;
  prompt: number[];
  max_tokens: number;
  temperature: number;
  seed: number;
}

/** Data of a stream's `final` event. */
interface Final {
  full_text: string;
  token_ids: number[];
  nfe: number;
  finish_reason: string;
}

/** Returns random requests, alternating between both models; deterministic by `seed`. */
function randomBodies(count: number, seed: number, tokens: { min: number; max: number }): Body[] {
  const random = new RandomNumbers(seed);
  const between = (low: number, high: number): number => low + Math.floor(random.next() * (high - low + 1));
  return Array.from({ length: count }, (_value, at) => ({
    model: models[at % 2]!,
    prompt: Array.from({ length: between(1, 14) }, () => between(4, 6143)),
    max_tokens: between(tokens.min, tokens.max),
    temperature: 1,
    seed: between(0, 2 ** 31),
  }));
}

/** Reads a stream to its end and checks that no token is lost or repeated. */
async function write(system: System, body: Body): Promise<Final> {
  const response = await postJson(`${system.url}/generate`, { ...body, ignore_eos: true, stream: true });
  const deltas: TextFrame['data'][] = [];
  let last: TextFrame | undefined;
  for await (const frame of readTextFrames(response)) {
    if (frame.event !== undefined) last = frame;
    if (frame.event === 'append') deltas.push(frame.data);
  }
  const ids = deltas.flatMap(({ token_ids }) => token_ids);
  const before = deltas.map((_delta, at) => deltas.slice(0, at).flatMap(({ token_ids }) => token_ids).length);
  expect(deltas.map(({ token_offset }) => token_offset)).toEqual(before);
  const text = deltas.map((delta) => delta.text).join('');
  expect(last).toMatchObject({ event: 'final', data: { full_text: text, token_ids: ids, finish_reason: 'length' } });
  expect(ids).toHaveLength(body.max_tokens);
  const { request_id: _id, ...final } = last!.data as unknown as Final & { request_id: string };
  return final;
}

/** Writes each text alone with the pipeline itself, without batching or interruption. */
async function writeAlone(bodies: readonly Body[]): Promise<Final[]> {
  const finals: Final[] = [];
  for (const model of models) {
    const directory = join(root, 'models', model);
    const pipeline = await loadTextPipeline({ directory, threads: 1, prefixCacheTokens: 0 });
    for (const [at, { model: wanted, max_tokens: maxTokens, ...body }] of bodies.entries()) {
      if (wanted !== model) continue;
      const input = textInput({ ...body, maxTokens, ignoreEos: true });
      const { text, tokens, facts } = await new TextTable(pipeline).write(input);
      const { calls: nfe, finish_reason } = facts;
      finals[at] = { full_text: text, token_ids: [...tokens], nfe, finish_reason };
    }
    await pipeline.dispose();
  }
  return finals;
}

it('streams 200 concurrent texts with the same result as each text alone', { timeout }, async () => {
  const system = await openSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
  await Promise.all(models.map((model) => system.start('worker', { MODEL_DIR: `models/${model}`, NUM_THREADS: '1' })));
  const bodies = randomBodies(200, 56, { min: 4, max: 40 });
  const together = await Promise.all(bodies.map((body) => write(system, body)));
  expect(together).toEqual(await writeAlone(bodies));
});

/** Many texts at once on one API. */
import { join } from 'node:path';
import { loadTextPipeline } from '@darkroom/language';
import { expect, it } from 'vitest';
import { RandomNumbers } from '../../libs/language/src/sampling/random-numbers.ts';
import { textInput, TextTable } from '../../libs/language/src/testing/text-table.ts';
import { openSystem, patience, type System } from '../e2e/system.ts';
import { readTextFrames, type TextFrame } from '../e2e/text-frames.ts';

const models = ['emoji-writer', 'emoji-writer-diffusion'] as const;
/** A machine with other things to do writes slowly. */
const timeout = 300_000;
const root = new URL('../../', import.meta.url).pathname;

interface Body {
  model: string;
  prompt: number[];
  max_tokens: number;
  temperature: number;
  seed: number;
}

/** `final` of a stream. */
interface Final {
  full_text: string;
  token_ids: number[];
  nfe: number;
  finish_reason: string;
}

/** Requests of both models in turns, short and long ones, that are as random as their seed. */
function randomBodies(count: number, seed: number, tokens: { least: number; most: number }): Body[] {
  const random = new RandomNumbers(seed);
  const between = (low: number, high: number): number => low + Math.floor(random.next() * (high - low + 1));
  return Array.from({ length: count }, (_value, at) => ({
    model: models[at % 2]!,
    prompt: Array.from({ length: between(1, 14) }, () => between(4, 6143)),
    max_tokens: between(tokens.least, tokens.most),
    temperature: 1,
    seed: between(0, 2 ** 31),
  }));
}

/** Reads a stream to its end, where no token may be lost or come twice. */
async function write(system: System, body: Body): Promise<Final> {
  const response = await fetch(`${system.url}/generate`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, ignore_eos: true, stream: true }),
  });
  const pieces: TextFrame['data'][] = [];
  let last: TextFrame | undefined;
  for await (const frame of readTextFrames(response)) {
    if (frame.event !== undefined) last = frame;
    if (frame.event === 'append') pieces.push(frame.data);
  }
  const ids = pieces.flatMap(({ token_ids }) => token_ids);
  const before = pieces.map((_piece, at) => pieces.slice(0, at).flatMap(({ token_ids }) => token_ids).length);
  expect(pieces.map(({ token_offset }) => token_offset)).toEqual(before);
  const text = pieces.map((piece) => piece.text).join('');
  expect(last).toMatchObject({ event: 'final', data: { full_text: text, token_ids: ids, finish_reason: 'length' } });
  expect(ids).toHaveLength(body.max_tokens);
  return last!.data as unknown as Final;
}

/** What becomes of each without company and interruption, by the pipeline itself. */
async function writeAlone(bodies: readonly Body[]): Promise<Final[]> {
  const finals: Final[] = [];
  for (const model of models) {
    const directory = join(root, 'models', model);
    const pipeline = await loadTextPipeline({ directory, threads: 1, keptTokens: 0 });
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

it('200 streams at once on one API end with the text that each has alone', { timeout }, async () => {
  const system = await openSystem({ parts: ['api', 'batch-former', 'janitor'], environment: patience });
  await Promise.all(models.map((model) => system.start('worker', { MODEL_DIR: `models/${model}`, NUM_THREADS: '1' })));
  const bodies = randomBodies(200, 56, { least: 4, most: 40 });
  const together = await Promise.all(bodies.map((body) => write(system, body)));
  expect(together).toEqual(await writeAlone(bodies));
});

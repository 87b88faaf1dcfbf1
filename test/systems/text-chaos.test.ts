/** Many texts at once: while workers and engines of both models are killed, and 200 of them on one API. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { loadTextPipeline } from '@darkroom/language';
import { expect, it, vi } from 'vitest';
import { RandomNumbers } from '../../libs/language/src/sampling/random-numbers.ts';
import { textInput, TextTable } from '../../libs/language/src/testing/text-table.ts';
import { openSystem, patience, type Part, type System } from '../e2e/system.ts';
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
    prompt: Array.from({ length: between(1, 14) }, () => between(4, 2047)),
    max_tokens: between(tokens.least, tokens.most),
    temperature: 1,
    seed: between(0, 2 ** 31),
  }));
}

/** Reads a stream to its end, where no token may be lost or come twice; `told` gets how many came with each piece. */
async function write(system: System, body: Body, told: (tokens: number) => void = () => {}): Promise<Final> {
  const response = await fetch(`${system.url}/generate`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, ignore_eos: true, stream: true }),
  });
  const pieces: TextFrame['data'][] = [];
  let last: TextFrame | undefined;
  for await (const frame of readTextFrames(response)) {
    if (frame.event !== undefined) last = frame;
    if (frame.event !== 'append') continue;
    pieces.push(frame.data);
    told(frame.data.token_ids.length);
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

/** Kills the engine under a worker, as soon as there is one. */
async function killEngine({ process: { pid } }: Part): Promise<void> {
  const engine = await vi.waitFor(() => execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' }), 30_000);
  process.kill(Number(engine.trim()), 'SIGKILL');
}

it(
  '20 texts whose workers and engines are killed at random lose nothing, repeat nothing, and are the same',
  { timeout },
  async () => {
    const environment = { WORKER_TTL_MS: '2500', CHECKPOINT_STEPS: '7', NUM_THREADS: '1' };
    const system = await openSystem({ parts: ['api', 'batch-former', 'janitor'], environment });
    const startWorker = (model: string) => system.start('worker', { MODEL_DIR: `models/${model}` });
    const workers = new Map(await Promise.all(models.map(async (model) => [model, await startWorker(model)] as const)));
    const bodies = randomBodies(20, 12, { least: 100, most: 200 });
    const random = new RandomNumbers(34);
    const chaos = models.map((model) => {
      const all = bodies.filter((body) => body.model === model).reduce((sum, body) => sum + body.max_tokens, 0);
      // Four times, each in another quarter of what is written, an engine and a worker in turns.
      const kills = Array.from({ length: 4 }, (_value, at) => ({
        atTokens: Math.floor(((at + 0.8 * random.next()) / 4) * all) + 1,
        what: at % 2 === 0 ? 'engine' : 'worker',
      }));
      return { model, kills, written: 0, wake: new EventTarget() };
    });
    const killing = chaos.map(async (state) => {
      const { model, kills } = state;
      for (const { atTokens, what } of kills) {
        while (state.written < atTokens) await once(state.wake, 'written');
        const worker = workers.get(model)!;
        if (what === 'engine') await killEngine(worker);
        else {
          await worker.kill();
          workers.set(model, await startWorker(model));
        }
      }
    });
    const disturbed = await Promise.all(
      bodies.map((body) => {
        const state = chaos.find(({ model }) => model === body.model)!;
        return write(system, body, (tokens) => {
          state.written += tokens;
          state.wake.dispatchEvent(new Event('written'));
        });
      }),
    );
    await Promise.all(killing);
    expect(disturbed).toEqual(await writeAlone(bodies));
    const { queues } = (await (await fetch(`${system.url}/status`)).json()) as {
      queues: { requeued: { worker_lost: number; engine_failed: number } }[];
    };
    for (const { requeued } of queues) {
      expect(requeued.worker_lost).toBeGreaterThan(0);
      expect(requeued.engine_failed).toBeGreaterThan(0);
    }
  },
);

it('200 streams at once on one API end with the text that each has alone', { timeout }, async () => {
  const system = await openSystem({ parts: ['api', 'batch-former', 'janitor'], environment: patience });
  await Promise.all(models.map((model) => system.start('worker', { MODEL_DIR: `models/${model}`, NUM_THREADS: '1' })));
  const bodies = randomBodies(200, 56, { least: 4, most: 40 });
  const together = await Promise.all(bodies.map((body) => write(system, body)));
  expect(together).toEqual(await writeAlone(bodies));
});

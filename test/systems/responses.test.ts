/** OpenAI's SDK streams a slow response while processes are killed: no text is lost or repeated. */
import { readEvents, readOutput, readRequest } from '@darkroom/store';
import { freePort } from '@darkroom/testing';
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { expect, it } from 'vitest';
import { openSystem, type Part, longWorkerTtl, type System } from '../e2e/system.ts';

const input = 'something sweet for a birthday party';

/** Body of a text that fills the context. `tokens_per_step` makes block diffusion compact the log within a block. */
const slow = (model: string, seed = 5) =>
  ({
    model,
    input,
    seed,
    temperature: 2,
    max_output_tokens: 220,
    ignore_eos: true,
    ...(model.endsWith('diffusion') && { tokens_per_step: 3 }),
  }) as const;

const connect = ({ url }: Pick<Part, 'url'>) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 20 });

interface Seen {
  text: string;
  numbers: number[];
  types: string[];
  last: ResponseStreamEvent | undefined;
}

const nothing: Seen = { text: '', numbers: [], types: [], last: undefined };

/** Adds the events to `before` until `enough` is true; returns the result. */
async function follow(
  events: AsyncIterable<ResponseStreamEvent>,
  before: Seen,
  enough: (seen: Seen) => boolean = () => false,
): Promise<Seen> {
  const seen = { ...before, numbers: [...before.numbers], types: [...before.types] };
  for await (const event of events) {
    seen.numbers.push(event.sequence_number);
    if (event.type === 'response.output_text.delta') seen.text += event.delta;
    else seen.types.push(event.type);
    seen.last = event;
    if (enough(seen)) break;
  }
  return seen;
}

/** Streams a response and calls `onText` at the first text, which kills the API; returns the id and what was seen. */
async function followUntilBroken(
  client: OpenAI,
  model: string,
  onText: (id: string) => Promise<void>,
): Promise<[string, Seen]> {
  let seen = nothing;
  let id = '';
  const stream = await client.responses.create({ ...slow(model), background: true, stream: true });
  try {
    for await (const event of stream) {
      if (event.type === 'response.created') ({ id } = event.response);
      const isFirst = event.type === 'response.output_text.delta' && seen.text === '';
      seen = await follow(
        (async function* () {
          yield event;
        })(),
        seen,
      );
      if (isFirst) await onText(id);
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return [id, seen];
  }
  throw new Error('the stream ended without an error, expected a broken connection');
}

/** Starts seven more responses, which slow the followed one down enough to be interrupted. */
async function keepBusy(client: OpenAI, model: string): Promise<void> {
  const seeds = Array.from({ length: 7 }, (_value, at) => 100 + at);
  await Promise.all(seeds.map((seed) => client.responses.create({ ...slow(model, seed), background: true })));
}

/** Sends a signal to all worker processes. Engines continue, but their output waits for the workers. */
function signalWorkers({ parts }: System, signal: NodeJS.Signals): void {
  for (const { name, process } of parts) if (name === 'worker') process.kill(signal);
}

it.each(['emoji-writer', 'emoji-writer-diffusion'])(
  'resumes a response stream on another API and on the restarted one after its API is killed: %s',
  async (model) => {
    const system = await openSystem({ parts: ['batch-former', 'janitor'], environment: longWorkerTtl });
    const [first, second] = await Promise.all([freePort(), freePort()]);
    const [api, other] = await Promise.all([
      system.start('api', { PORT: String(first) }),
      system.start('api', { PORT: String(second) }),
      system.start('worker', { MODEL_DIR: `models/${model}`, NUM_THREADS: '1' }),
    ]);
    const full = await connect(other).responses.create(slow(model));
    await keepBusy(connect(other), model);
    const [id, seen] = await followUntilBroken(connect(api), model, async () => {
      signalWorkers(system, 'SIGSTOP');
      await api.kill();
    });
    const from = seen.numbers.at(-1)!;
    const again = await system.start('api', { PORT: String(first) });
    const stored = await readRequest(system.store, id.replace('resp_', ''));
    expect(stored).toMatchObject({ request: { state: 'running' } });
    expect(seen.text.length).toBeLessThan(full.output_text.length);
    const resumed = await Promise.all(
      [other, again].map((part) => connect(part).responses.retrieve(id, { stream: true, starting_after: from })),
    );
    signalWorkers(system, 'SIGCONT');
    const ends = await Promise.all(resumed.map((stream) => follow(stream, seen)));
    const output = await readOutput(system.store, id.replace('resp_', ''), 0);
    expect(output?.data.toString()).toBe(full.output_text);
    for (const { text, numbers, types, last } of ends) {
      expect(text).toBe(full.output_text);
      expect(numbers).toEqual([...new Set(numbers)].toSorted((left, right) => left - right));
      expect(types).toEqual([
        'response.created',
        'response.queued',
        'response.in_progress',
        'response.output_item.added',
        'response.content_part.added',
        'response.output_text.done',
        'response.content_part.done',
        'response.output_item.done',
        'response.incomplete',
      ]);
      expect(last).toMatchObject({ response: { id, output: [{ content: [{ text }] }] } });
    }
    // Resumes from the same number after the log was compacted to fewer events than were read.
    const late = await connect(again).responses.retrieve(id, { stream: true, starting_after: from });
    expect((await follow(late, seen)).text).toBe(full.output_text);
  },
);

it('resumes a response stream without lost text after the API and the worker are killed', async () => {
  const model = 'emoji-writer';
  const system = await openSystem({ parts: ['batch-former', 'janitor'] });
  const worker = () => system.start('worker', { MODEL_DIR: `models/${model}`, NUM_THREADS: '1' });
  const [api, other, doomed] = await Promise.all([system.start('api'), system.start('api'), worker()]);
  const full = await connect(other).responses.create(slow(model));
  await keepBusy(connect(other), model);
  const [id, seen] = await followUntilBroken(connect(api), model, async () => {
    await Promise.all([doomed.kill(), api.kill()]);
  });
  await worker();
  const rest = await connect(other).responses.retrieve(id, { stream: true, starting_after: seen.numbers.at(-1)! });
  const { text, last } = await follow(rest, seen);
  expect(text).toBe(full.output_text);
  expect(last).toMatchObject({ type: 'response.incomplete', response: { output: [{ content: [{ text }] }] } });
  const log = await readEvents(system.store, id.replace('resp_', ''), { after: 0 });
  expect(log.filter(({ type }) => type === 'started')).toHaveLength(2);
});

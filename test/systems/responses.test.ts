/** OpenAI's SDK follows a slow response while the processes that it comes through die: no word is lost, and none comes twice. */
import { readEvents, readOutput, readRequest } from '@darkroom/store';
import { freePort } from '@darkroom/testing';
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { expect, it } from 'vitest';
import { openSystem, type Part, patience, type System } from '../e2e/system.ts';

const input = 'something sweet for a birthday party';

/** Writes as much as the model has room for. Block by block a log is made shorter in the middle of a block so. */
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

/** What was seen before, and all that comes, until `enough`. */
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

/** The pieces of a stream that has begun, after which its API is gone. */
async function followToItsDeath(
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
  throw new Error('the stream came to its end');
}

/** In company everything takes longer: there is time to die in the middle. */
async function keepBusy(client: OpenAI, model: string): Promise<void> {
  const seeds = Array.from({ length: 7 }, (_value, at) => 100 + at);
  await Promise.all(seeds.map((seed) => client.responses.create({ ...slow(model, seed), background: true })));
}

/** Sends a signal to all processes of a worker but its engine, which says nothing without them. */
function signalWorkers({ parts }: System, signal: NodeJS.Signals): void {
  for (const { name, process } of parts) if (name === 'worker') process.kill(signal);
}

it.each(['emoji-writer', 'emoji-writer-diffusion'])(
  'an API that is killed in the middle of a stream, and started again: %s',
  async (model) => {
    const system = await openSystem({ parts: ['batch-former', 'janitor'], environment: patience });
    const [first, second] = await Promise.all([freePort(), freePort()]);
    const [api, other] = await Promise.all([
      system.start('api', { PORT: String(first) }),
      system.start('api', { PORT: String(second) }),
      system.start('worker', { MODEL_DIR: `models/${model}`, NUM_THREADS: '1' }),
    ]);
    const whole = await connect(other).responses.create(slow(model));
    await keepBusy(connect(other), model);
    const [id, seen] = await followToItsDeath(connect(api), model, async () => {
      signalWorkers(system, 'SIGSTOP');
      await api.kill();
    });
    const from = seen.numbers.at(-1)!;
    const again = await system.start('api', { PORT: String(first) });
    const stored = await readRequest(system.store, id.replace('resp_', ''));
    expect(stored).toMatchObject({ request: { state: 'running' } });
    expect(seen.text.length).toBeLessThan(whole.output_text.length);
    const resumed = await Promise.all(
      [other, again].map((part) => connect(part).responses.retrieve(id, { stream: true, starting_after: from })),
    );
    signalWorkers(system, 'SIGCONT');
    const ends = await Promise.all(resumed.map((stream) => follow(stream, seen)));
    const output = await readOutput(system.store, id.replace('resp_', ''), 0);
    expect(output?.data.toString()).toBe(whole.output_text);
    for (const { text, numbers, types, last } of ends) {
      expect(text).toBe(whole.output_text);
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
    // From any number, now that the log is shorter than what was read of it.
    const late = await connect(again).responses.retrieve(id, { stream: true, starting_after: from });
    expect((await follow(late, seen)).text).toBe(whole.output_text);
  },
);

it('a worker that is killed beside the API costs a pause, and not a word', async () => {
  const model = 'emoji-writer';
  const system = await openSystem({ parts: ['batch-former', 'janitor'] });
  const worker = () => system.start('worker', { MODEL_DIR: `models/${model}`, NUM_THREADS: '1' });
  const [api, other, doomed] = await Promise.all([system.start('api'), system.start('api'), worker()]);
  const whole = await connect(other).responses.create(slow(model));
  await keepBusy(connect(other), model);
  const [id, seen] = await followToItsDeath(connect(api), model, async () => {
    await Promise.all([doomed.kill(), api.kill()]);
  });
  await worker();
  const rest = await connect(other).responses.retrieve(id, { stream: true, starting_after: seen.numbers.at(-1)! });
  const { text, last } = await follow(rest, seen);
  expect(text).toBe(whole.output_text);
  expect(last).toMatchObject({ type: 'response.incomplete', response: { output: [{ content: [{ text }] }] } });
  const log = await readEvents(system.store, id.replace('resp_', ''), { after: 0 });
  expect(log.filter(({ type }) => type === 'started')).toHaveLength(2);
});

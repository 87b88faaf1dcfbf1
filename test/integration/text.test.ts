/** Text end to end: from the API through batch-former, worker and engine to a client, for each way to generate it. */
import { type ModelCard, type RowRequest, textAfter } from '@darkroom/core';
import { createOpenai, EngineKinds, type Executor, type ExecutorListener, UpstreamExecutor } from '@darkroom/executor';
import { createKinds, imageKind } from '@darkroom/kinds';
import { publishModel, readEvents, readOutput, type StoreConnection } from '@darkroom/store';
import { echo, echoCard, echoEngine } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { openTestApi, type TestApi } from '../../apps/api/src/testing/test-api.ts';
import { Worker } from '../../apps/worker/src/worker/worker.ts';
import { InProcessExecutor } from '../../libs/executor/src/testing/in-process-executor.ts';
import { ToyOpenai } from '../../libs/executor/src/testing/toy-openai.ts';
import { WriterPipeline } from '../../libs/executor/src/testing/writer-pipeline.ts';
import { openFormer } from './open-former.ts';
import { optionsOf } from './worker-bench.ts';

const model = echoCard.id;

/** Writes up to `max` letters: the API's test kind validates a prompt only. */
class LongWriter extends WriterPipeline {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override createRows(request: RowRequest) {
    return super.createRows({ ...request, input: { ...(request.input as object), max: this.#max, slots: 5 } });
  }
}

/** Sends chat input upstream: the API's test kind has only echoes. */
class LongForwarder extends UpstreamExecutor {
  words: number | undefined = 300;

  override async start(): Promise<ModelCard> {
    await super.start();
    return echoCard;
  }

  override submit(requests: readonly RowRequest[]): void {
    const input = { params: { prompt: 'wish', max_tokens: this.words }, n: 1, seed: 1, maxTokens: 1000 };
    super.submit(requests.map((request) => ({ ...request, input })));
  }
}

function write(letters: number): (onEvents: ExecutorListener) => Executor {
  const loadPipeline = () => Promise.resolve(new LongWriter(letters));
  return (onEvents) => new InProcessExecutor({ maxSlots: 1000, checkpointEvery: 10, onEvents, loadPipeline });
}

async function forward(): Promise<(onEvents: ExecutorListener) => LongForwarder> {
  const toy = new ToyOpenai();
  const url = await toy.start();
  onTestFinished(() => void toy.stop());
  const options = { url, createProtocol: createOpenai, model: 'toy_writer', maxSlots: 2 };
  return (onEvents) => new LongForwarder({ ...options, onEvents });
}

async function open(): Promise<TestApi> {
  const test = await openTestApi({ kinds: createKinds([imageKind, echo]) });
  const { store } = test;
  await publishModel(store, echoCard);
  await openFormer(store, { maxSize: 100, slowTickMs: 1000 }).former.start();
  return test;
}

async function startWorker(
  { store }: TestApi,
  workerId: string,
  createExecutor: (onEvents: ExecutorListener) => Executor,
): Promise<Worker> {
  const worker = new Worker({
    ...optionsOf(store, createExecutor),
    card: echoCard,
    workerId,
    capacity: 1000,
    kinds: new EngineKinds([echoEngine]),
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

async function poll({ api }: TestApi, id: string) {
  const response = await api.request(`/v1/predict/${id}`);
  return (await response.json()) as { status: string; text: string; characters: number };
}

/** Applies all events of the log from its beginning, as a client does. */
async function readLog(store: StoreConnection, id: string) {
  const events = await readEvents(store, id, { after: 0, limit: 10_000 });
  const textEvents = events.flatMap((event) =>
    event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset' ? [event] : [],
  );
  return { textEvents, text: textEvents.reduce(textAfter, '') };
}

it.each(['a pipeline', 'an upstream server'])(
  'text of %s: the polled text and the streamed text equal the output',
  async (how) => {
    const test = await open();
    await startWorker(test, 'w1', how === 'a pipeline' ? write(300) : await forward());
    const id = await test.submit({ model, prompt: 'wish' });
    await expect.poll(async () => (await poll(test, id)).status).toBe('succeeded');
    const output = (await readOutput(test.store, id, 0))!.data.toString();
    expect(output.length).toBeGreaterThan(64);
    expect((await poll(test, id)).text).toBe(output);
    const { textEvents, text } = await readLog(test.store, id);
    expect(text).toBe(output);
    expect(textEvents[0]).toMatchObject({ type: 'snapshot', offset: 0 });
    expect(textEvents.length).toBeLessThan(70);
  },
);

it('text continues on another worker where it stopped, with few events in the log', async () => {
  const test = await open();
  const first = await startWorker(test, 'w1', write(Infinity));
  const id = await test.submit({ model, prompt: 'wish' });
  const length = async (): Promise<number> => (await poll(test, id)).text.length;
  await expect.poll(length).toBeGreaterThan(100);
  await first.stop();
  const given = await length();
  const second = await startWorker(test, 'w2', write(Infinity));
  await expect.poll(length).toBeGreaterThan(given + 200);
  await second.stop();
  const { text } = await poll(test, id);
  const alone = new LongWriter(Infinity);
  const [row] = await alone.createRows({ id, input: { prompt: 'wish' } });
  while (row!.text.length < text.length) await alone.step([row!]);
  expect(text).toBe(row!.text);
  const { textEvents } = await readLog(test.store, id);
  expect(textEvents[0]).toMatchObject({ type: 'snapshot', offset: 0 });
  expect('text' in textEvents[0]! && textEvents[0].text.length).toBeGreaterThan(given);
  expect(textEvents.length).toBeLessThan(70);
});

it('text of an upstream server is generated again after a lost connection, and no word comes twice', async () => {
  const test = await open();
  const create = await forward();
  let executor: LongForwarder | undefined;
  await startWorker(test, 'w1', (onEvents) => {
    executor = create(onEvents);
    executor.words = undefined;
    return executor;
  });
  const id = await test.submit({ model, prompt: 'wish' });
  await expect.poll(async () => (await poll(test, id)).text.length).toBeGreaterThan(0);
  executor!.words = 300;
  executor!.kill();
  await expect.poll(async () => (await poll(test, id)).status).toBe('succeeded');
  const output = (await readOutput(test.store, id, 0))!.data.toString();
  expect((await poll(test, id)).text).toBe(output);
  expect((await readLog(test.store, id)).text).toBe(output);
});

/** What every executor keeps, whatever it does with a request: for ours, and for those of others. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ExecutorEvent, ExecutorListener } from '../executor-event.ts';
import type { Executor } from '../executor.ts';
import { EventLog } from './event-log.ts';

/** An executor to be tried, and work for it, of the kind that its model does. */
export interface ExecutorSubject {
  create: (onEvents: ExecutorListener) => Executor;
  /** An input that has ended within a second or so. Another number gives other outputs. */
  shortInput: (options: { number: number; outputs: number }) => unknown;
  /** One that takes so long that nobody who waits for its first word finds it at its end. */
  longInput: unknown;
  /** One that cannot be served, and what is said of it. */
  badInput: { input: unknown; message: string };
  /** Whether an output is the same to the byte whoever is served beside it. By default it is. */
  isExact?: boolean;
  /** One whose engine is in the caller's own process has nobody who could end it. */
  canBeKilled?: boolean;
}

/** Makes the tests of an executor. To be called at the top of a file of tests, with Vitest. */
export function describeExecutor(name: string, subject: ExecutorSubject): void {
  describe(`the executor ${name}`, () => {
    const log = new EventLog();
    const executor = subject.create(log.listener);
    beforeAll(() => executor.start());
    afterAll(() => executor.shutdown());
    beforeEach(() => {
      log.events = [];
    });
    const trial: Trial = {
      log,
      executor,
      subject,
      short: (id, number = 1, outputs = 1) => ({ id, input: subject.shortInput({ number, outputs }) }),
    };
    testRequests(trial);
    testCancel(trial);
    testLife(trial);
    if (subject.canBeKilled !== false) testKill(trial);
  });
}

interface Trial {
  log: EventLog;
  executor: Executor;
  subject: ExecutorSubject;
  short: (id: string, number?: number, outputs?: number) => { id: string; input: unknown };
}

function testRequests({ log, executor, subject, short }: Trial): void {
  const { isExact = true } = subject;
  const numbers = Array.from({ length: 8 }, (_, number) => number);

  it('gives each output once, then says that the request is done, and nothing of it after', async () => {
    executor.submit([short('a', 1, 2), short('b', 2, 1)]);
    await Promise.all([log.end('a'), log.end('b')]);
    expect(new Set(log.outputs('a').keys())).toEqual(new Set([0, 1]));
    expect(log.of('output', 'a')).toHaveLength(2);
    expect([...log.outputs('b').keys()]).toEqual([0]);
    for (const id of ['a', 'b']) {
      const ofRequest = log.events.filter((event) => 'requestId' in event && event.requestId === id);
      expect(ofRequest.filter(({ type }) => type.startsWith('request-'))).toEqual([
        { type: 'request-done', requestId: id },
      ]);
      expect(ofRequest.at(-1)!.type).toBe('request-done');
    }
  });

  it('says of each output what leads to it, in order', async () => {
    executor.submit([short('a', 1, 2)]);
    await log.end('a');
    for (const [index, data] of log.outputs('a')) {
      const said = log.events.filter((event) => 'index' in event && event.index === index);
      const done = said.flatMap((event) => (event.type === 'progress' ? [event.done] : []));
      expect(done).toEqual(done.toSorted((left, right) => left - right));
      const text = said.reduce(written, undefined);
      expect(text ?? data.toString()).toBe(data.toString());
      expect(said.at(-1)!.type).toBe('output');
    }
  });

  it('makes only the outputs asked for', async () => {
    executor.submit([{ ...short('some', 1, 3), indexes: [0, 2] }]);
    await log.end('some');
    expect(new Set(log.outputs('some').keys())).toEqual(new Set([0, 2]));
    expect(log.of('output', 'some')).toHaveLength(2);
  });

  it('serves many requests at once, those that find no room at first too', async () => {
    executor.submit(numbers.map((number) => short(`request ${number}`, number)));
    const ends = await Promise.all(numbers.map((number) => log.end(`request ${number}`)));
    expect(new Set(ends.map(({ type }) => type))).toEqual(new Set(['request-done']));
    expect(log.of('output')).toHaveLength(numbers.length);
  });

  it.runIf(isExact)('makes of each of them what it makes of it alone', async () => {
    for (const number of numbers) {
      executor.submit([short(`alone ${number}`, number)]);
      await log.end(`alone ${number}`);
    }
    executor.submit(numbers.map((number) => short(`together ${number}`, number)));
    await Promise.all(numbers.map((number) => log.end(`together ${number}`)));
    const outputs = numbers.map((number) => log.outputs(`together ${number}`).get(0)!);
    expect(outputs).toEqual(numbers.map((number) => log.outputs(`alone ${number}`).get(0)));
    expect(new Set(outputs.map((output) => output.toString('base64'))).size).toBe(numbers.length);
  });

  it.runIf(isExact)('makes of an output what it makes of it beside the others', async () => {
    executor.submit([short('all', 1, 3)]);
    await log.end('all');
    executor.submit([{ ...short('one', 1, 3), indexes: [2] }]);
    await log.end('one');
    expect(log.outputs('one').get(2)).toEqual(log.outputs('all').get(2));
  });

  it('takes a request that is delivered twice once', async () => {
    executor.submit([short('a')]);
    executor.submit([short('a'), short('b')]);
    await Promise.all([log.end('a'), log.end('b')]);
    expect(log.of('output', 'a')).toHaveLength(1);
    expect(log.of('request-done', 'a')).toHaveLength(1);
  });

  it('fails what it cannot serve, in words that are safe to show, and nobody else', async () => {
    const { input, message } = subject.badInput;
    executor.submit([short('a'), { id: 'bad', input }, short('b')]);
    await Promise.all(['a', 'bad', 'b'].map((id) => log.end(id)));
    expect(log.of('request-failed')).toEqual([
      { type: 'request-failed', requestId: 'bad', code: 'invalid_request', message },
    ]);
    expect(log.of('request-done')).toHaveLength(2);
  });
}

function testCancel({ log, executor, subject, short }: Trial): void {
  it('lets go of what is canceled and says no more of it, and others go on', async () => {
    executor.submit([{ id: 'long', input: subject.longInput }, short('a')]);
    await log.firstWord('long');
    executor.cancel('long');
    executor.cancel('nobody');
    const canceled = await log.end('long');
    expect(canceled).toEqual({ type: 'request-canceled', requestId: 'long' });
    executor.submit([short('b')]);
    await Promise.all([log.end('a'), log.end('b')]);
    const ofLong = log.events.filter((event) => 'requestId' in event && event.requestId === 'long');
    expect(ofLong.at(-1)).toBe(canceled);
  });
}

function testLife({ log, executor, subject, short }: Trial): void {
  it('says how it is', async () => {
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: true, slots: 0, waitingRequests: 0 });
    executor.submit([{ id: 'long', input: subject.longInput }]);
    await log.firstWord('long');
    const { slots } = await executor.checkHealth();
    expect(slots).toBeGreaterThan(0);
    executor.cancel('long');
    await log.end('long');
  });

  it('cannot be started twice', async () => {
    await expect(executor.start()).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('leaves open what has not ended when it is shut down, takes no more, and starts again', async () => {
    executor.submit([{ id: 'long', input: subject.longInput }]);
    await log.firstWord('long');
    await executor.shutdown();
    const said = log.events.length;
    expect(log.events.filter(({ type }) => type.startsWith('request-') || type === 'engine-lost')).toEqual([]);
    expect(() => executor.submit([short('b')])).toThrow(expect.objectContaining({ code: 'unavailable' }) as Error);
    executor.cancel('long');
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: false });
    await executor.shutdown();
    expect(log.events).toHaveLength(said);
    expect(await executor.start()).toMatchObject({ id: expect.any(String) as string });
    executor.submit([short('long')]);
    expect(await log.end('long')).toMatchObject({ type: 'request-done' });
  });
}

function testKill({ log, executor, subject, short }: Trial): void {
  it('says what is lost when its engine is killed, and starts another', async () => {
    executor.submit([short('a')]);
    await log.end('a');
    executor.submit([{ id: 'long', input: subject.longInput }]);
    await log.firstWord('long');
    executor.kill();
    const lost = await log.next(({ type }) => type === 'engine-lost');
    expect(lost).toMatchObject({ message: expect.any(String) as string, requestIds: ['long'] });
    expect(log.events.at(-1)).toBe(lost);
    expect(() => executor.submit([short('b')])).toThrow(expect.objectContaining({ code: 'unavailable' }) as Error);
    await executor.start();
    executor.submit([short('long')]);
    expect(await log.end('long')).toMatchObject({ type: 'request-done' });
  });
}

/** What stands in an output after one more event of it; undefined as long as nothing was written. */
function written(text: string | undefined, event: ExecutorEvent): string | undefined {
  if (event.type !== 'delta' && event.type !== 'snapshot') return text;
  return (text ?? '').slice(0, event.offset).padEnd(event.offset, '?') + event.text;
}

/** Conformance tests that every executor passes, ours and custom ones, whatever kind of model it runs. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ExecutorEvent, ExecutorListener } from '../executor-event.ts';
import type { Executor } from '../executor.ts';
import { EventLog } from './event-log.ts';

/** The executor under test, with inputs of its model's kind. */
export interface ExecutorSubject {
  create: (onEvents: ExecutorListener) => Executor;
  /** An input whose request ends within about a second. Different numbers give different outputs. */
  shortInput: (options: { number: number; outputs: number }) => unknown;
  /** An input that is still running when a test acts on its first progress event. */
  longInput: unknown;
  /** An input that cannot be served, with the expected error message. */
  badInput: { input: unknown; message: string };
  /** Set if an output's bytes do not depend on concurrent requests. Default true. */
  isExact?: boolean;
  /** False if the engine runs in the caller's process, where nothing can kill it. Default true. */
  canBeKilled?: boolean;
}

/** Defines the tests of an executor. Call at the top level of a Vitest file. */
export function describeExecutor(name: string, subject: ExecutorSubject): void {
  describe(`the executor ${name}`, () => {
    const log = new EventLog();
    const executor = subject.create(log.listener);
    beforeAll(() => executor.start());
    afterAll(() => executor.shutdown());
    beforeEach(() => {
      log.events = [];
    });
    const harness: Harness = {
      log,
      executor,
      subject,
      short: (id, number = 1, outputs = 1) => ({ id, input: subject.shortInput({ number, outputs }) }),
    };
    testRequests(harness);
    testCancel(harness);
    testLife(harness);
    if (subject.canBeKilled !== false) testKill(harness);
  });
}

interface Harness {
  log: EventLog;
  executor: Executor;
  subject: ExecutorSubject;
  short: (id: string, number?: number, outputs?: number) => { id: string; input: unknown };
}

function testRequests({ log, executor, subject, short }: Harness): void {
  const { isExact = true } = subject;
  const numbers = Array.from({ length: 8 }, (_, number) => number);

  it('emits each output once, then request-done as the last event of the request', async () => {
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
      expect(ofRequest.at(-1)?.type).toBe('request-done');
    }
  });

  it('emits progress and text of each output in order, before the output', async () => {
    executor.submit([short('a', 1, 2)]);
    await log.end('a');
    for (const [index, data] of log.outputs('a')) {
      const outputEvents = log.events.filter((event) => 'index' in event && event.index === index);
      const done = outputEvents.flatMap((event) => (event.type === 'progress' ? [event.done] : []));
      expect(done).toEqual(done.toSorted((left, right) => left - right));
      const text = outputEvents.reduce(applyText, undefined);
      expect(text ?? data.toString()).toBe(data.toString());
      expect(outputEvents.at(-1)?.type).toBe('output');
    }
  });

  it('computes only the requested outputs', async () => {
    executor.submit([{ ...short('some', 1, 3), indexes: [0, 2] }]);
    await log.end('some');
    expect(new Set(log.outputs('some').keys())).toEqual(new Set([0, 2]));
    expect(log.of('output', 'some')).toHaveLength(2);
  });

  it('completes many concurrent requests, also those that must wait for a slot', async () => {
    executor.submit(numbers.map((number) => short(`request ${number}`, number)));
    const ends = await Promise.all(numbers.map((number) => log.end(`request ${number}`)));
    expect(new Set(ends.map(({ type }) => type))).toEqual(new Set(['request-done']));
    expect(log.of('output')).toHaveLength(numbers.length);
  });

  it.runIf(isExact)('gives a request the same bytes in a batch as alone', async () => {
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

  it.runIf(isExact)('gives an output the same bytes alone as beside the other outputs of its request', async () => {
    executor.submit([short('all', 1, 3)]);
    await log.end('all');
    executor.submit([{ ...short('one', 1, 3), indexes: [2] }]);
    await log.end('one');
    expect(log.outputs('one').get(2)).toEqual(log.outputs('all').get(2));
  });

  it('ignores a request that is delivered again', async () => {
    executor.submit([short('a')]);
    executor.submit([short('a'), short('b')]);
    await Promise.all([log.end('a'), log.end('b')]);
    expect(log.of('output', 'a')).toHaveLength(1);
    expect(log.of('request-done', 'a')).toHaveLength(1);
  });

  it('fails an invalid request with a message that is safe to show, and no other request', async () => {
    const { input, message } = subject.badInput;
    executor.submit([short('a'), { id: 'bad', input }, short('b')]);
    await Promise.all(['a', 'bad', 'b'].map((id) => log.end(id)));
    expect(log.of('request-failed')).toEqual([
      { type: 'request-failed', requestId: 'bad', code: 'invalid_request', message },
    ]);
    expect(log.of('request-done')).toHaveLength(2);
  });
}

function testCancel({ log, executor, subject, short }: Harness): void {
  it('drops a canceled request, emits no more events of it, and continues others', async () => {
    executor.submit([{ id: 'long', input: subject.longInput }, short('a')]);
    await log.firstProgress('long');
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

function testLife({ log, executor, subject, short }: Harness): void {
  it('reports its health and the slots in use', async () => {
    // A slot is free once its call has ended, which may be after the end of its canceled request.
    await expect.poll(() => executor.checkHealth()).toMatchObject({ isHealthy: true, slots: 0, waitingRequests: 0 });
    executor.submit([{ id: 'long', input: subject.longInput }]);
    await log.firstProgress('long');
    const { slots } = await executor.checkHealth();
    expect(slots).toBeGreaterThan(0);
    executor.cancel('long');
    await log.end('long');
  });

  it('refuses to start while it is running', async () => {
    await expect(executor.start()).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('shuts down without ending open requests, refuses new ones, and restarts', async () => {
    executor.submit([{ id: 'long', input: subject.longInput }]);
    await log.firstProgress('long');
    await executor.shutdown();
    const eventCount = log.events.length;
    expect(log.events.filter(({ type }) => type.startsWith('request-') || type === 'engine-lost')).toEqual([]);
    expect(() => executor.submit([short('b')])).toThrow(expect.objectContaining({ code: 'unavailable' }) as Error);
    executor.cancel('long');
    expect(await executor.checkHealth()).toMatchObject({ isHealthy: false });
    await executor.shutdown();
    expect(log.events).toHaveLength(eventCount);
    expect(await executor.start()).toMatchObject({ id: expect.any(String) as string });
    executor.submit([short('long')]);
    expect(await log.end('long')).toMatchObject({ type: 'request-done' });
  });
}

function testKill({ log, executor, subject, short }: Harness): void {
  it('reports the lost requests when its engine is killed, and restarts', async () => {
    executor.submit([short('a')]);
    await log.end('a');
    executor.submit([{ id: 'long', input: subject.longInput }]);
    await log.firstProgress('long');
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

/** Returns an output's text after one more event; undefined until an event carries text. */
function applyText(text: string | undefined, event: ExecutorEvent): string | undefined {
  if (event.type !== 'delta' && event.type !== 'snapshot') return text;
  return (text ?? '').slice(0, event.offset).padEnd(event.offset, '?') + event.text;
}

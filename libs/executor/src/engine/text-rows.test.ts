/** Tests the engine with rows that write text: features that image pipelines do not use. */
import { describe, expect, it } from 'vitest';
import type { EngineEvent } from '../executor-event.ts';
import { Engine } from './engine.ts';
import { type WriterInput, WriterPipeline } from '../testing/writer-pipeline.ts';

type Act = (event: EngineEvent) => void;

function createWriter({ maxSlots = 1000, checkpointEvery = 0 } = {}) {
  const pipeline = new WriterPipeline();
  const events: EngineEvent[] = [];
  const ended = new Map<string, () => void>();
  const acts: Act[] = [];
  const engine = new Engine({
    pipeline,
    maxSlots,
    checkpointEvery,
    onEvents(batch) {
      for (const event of batch) {
        events.push(event);
        for (const act of acts) act(event);
        if (event.type.startsWith('request-')) ended.get((event as { requestId: string }).requestId)?.();
      }
    },
  });
  /** Resolves when the request has ended. */
  const write = (id: string, input: WriterInput, more: Partial<Parameters<typeof engine.submit>[0][0]> = {}) => {
    const end = new Promise<void>((resolve) => ended.set(id, resolve));
    engine.submit([{ id, input, ...more }]);
    return end;
  };
  const of = <Type extends EngineEvent['type']>(type: Type, id?: string) =>
    events.filter(
      (event): event is Extract<EngineEvent, { type: Type }> =>
        event.type === type && (id === undefined || ('requestId' in event && event.requestId === id)),
    );
  const textOf = (id: string, index = 0) => {
    const output = of('output', id).find((event) => event.index === index);
    return output && new TextDecoder().decode(output.output.data);
  };
  return { pipeline, engine, events, write, of, textOf, onEvent: (act: Act) => void acts.push(act) };
}

describe('an engine with text rows', () => {
  it('emits a delta per letter, and progress without a total', async () => {
    const { write, of, textOf, events } = createWriter();
    await write('a', { prompt: 'a wish', max: 5 });
    const text = textOf('a')!;
    expect(text).toHaveLength(5);
    expect(of('delta').map(({ offset, text: letter }) => [offset, letter])).toEqual(
      Array.from(text, (letter, at) => [at, letter]),
    );
    expect(of('progress')).toEqual(
      [1, 2, 3, 4, 5].map((done) => ({ type: 'progress', requestId: 'a', index: 0, done })),
    );
    // The final letter is known in advance only because `max` is reached; row-releasing is emitted once before it.
    const types = events.filter(({ type }) => type !== 'stats' && type !== 'progress').map(({ type }) => type);
    expect(types.slice(-5)).toEqual(['delta', 'row-releasing', 'delta', 'output', 'request-done']);
    expect(of('row-releasing')).toHaveLength(1);
  });

  it('emits snapshots of the block being denoised', async () => {
    const { write, of, textOf } = createWriter();
    await write('a', { prompt: 'a wish', max: 8, mode: 'blocks' });
    const text = textOf('a')!;
    const [first, second] = [text.slice(0, 4), text.slice(4)];
    expect(of('snapshot').map(({ offset, text: block }) => [offset, block])).toEqual([
      [0, `_${first[1]}_${first[3]}`],
      [0, first],
      [4, `_${second[1]}_${second[3]}`],
      [4, second],
    ]);
    expect(of('row-releasing')).toEqual([]);
  });

  it('interleaves the steps of other rows with a long prompt', async () => {
    const { pipeline, write, onEvent } = createWriter();
    let joining: Promise<void> | undefined;
    onEvent((event) => {
      if (event.type === 'delta' && event.requestId === 'a' && event.offset === 1)
        joining = write('b', { prompt: 'a prompt of 23 letters.', max: 2 });
    });
    await write('a', { prompt: 'wish', max: 12 });
    await joining;
    const first = pipeline.calls.indexOf('prompt b');
    const last = pipeline.calls.lastIndexOf('prompt b');
    expect(pipeline.calls.slice(first, last + 1)).toEqual(
      Array.from({ length: 11 }, (_, at) => (at % 2 === 0 ? 'prompt b' : 'letters a')),
    );
    expect(pipeline.calls[last + 1]).toBe('letters ab');
  });

  it('gives each row the same bytes as alone while others join and leave', async () => {
    const requests = Array.from({ length: 12 }, (_, at) => {
      const mode = at % 3 === 0 ? ('blocks' as const) : ('letters' as const);
      return { id: `r${at}`, input: { prompt: 'wish'.repeat(1 + (at % 4)) + at, max: 4 * (1 + (at % 5)), mode } };
    });
    const alone = createWriter();
    for (const { id, input } of requests) await alone.write(id, input);
    // Submit another request after each step; requests that do not fit wait.
    const { pipeline, write, textOf, of, onEvent } = createWriter({ maxSlots: 60 });
    const left = [...requests];
    const ends: Promise<void>[] = [];
    const next = () => {
      const request = left.shift();
      if (request !== undefined) ends.push(write(request.id, request.input));
    };
    onEvent((event) => event.type === 'stats' && next());
    next();
    for (let at = 0; at < ends.length; at++) await ends[at];
    expect(requests.map(({ id }) => textOf(id))).toEqual(requests.map(({ id }) => alone.textOf(id)));
    expect(new Set(requests.map(({ id }) => textOf(id))).size).toBe(requests.length);
    expect(pipeline.calls.some((call) => call.split('r').length > 3)).toBe(true);
    expect(Math.max(...of('stats').map(({ tableSlots }) => tableSlots))).toBeLessThanOrEqual(60);
    expect(of('stats').some(({ waitingRequests }) => waitingRequests > 0)).toBe(true);
  });

  it.each(['letters', 'blocks'] as const)('resumes from every checkpoint to the same bytes, with %s', async (mode) => {
    const whole = createWriter({ checkpointEvery: 1 });
    await whole.write('a', { prompt: 'a wish', max: 12, mode });
    const checkpoints = whole.of('checkpoint').map(({ checkpoint }) => checkpoint);
    expect(new Set(checkpoints.map(({ done }) => done)).size).toBeGreaterThan(2);
    for (const checkpoint of checkpoints) {
      const resumed = createWriter();
      await resumed.write(
        'a',
        { prompt: 'a wish', max: 12, mode },
        { checkpoints: new Map([[0, structuredClone(checkpoint)]]) },
      );
      expect(resumed.textOf('a')).toBe(whole.textOf('a'));
      const textEvents = [...resumed.of('delta'), ...resumed.of('snapshot')];
      expect(textEvents[0]!.offset).toBe(checkpoint.done);
    }
  });
});

describe('slots', () => {
  it('counts the slots that each row takes', async () => {
    const { write, of } = createWriter({ maxSlots: 40 });
    const wide = { prompt: 'w', max: 24 };
    await Promise.all([write('a', wide), write('b', wide), write('c', { prompt: 'c', max: 4 })]);
    // c would fit beside a, but b was submitted before it.
    expect(of('request-done').map(({ requestId }) => requestId)).toEqual(['a', 'c', 'b']);
    const slots = of('stats').map(({ tableSlots }) => tableSlots);
    expect(slots.filter((count, at) => count !== slots[at - 1])).toEqual([25, 30, 25]);
  });

  it('fails a request that needs more slots than exist, instead of queueing it', async () => {
    const { pipeline, write, of, textOf } = createWriter({ maxSlots: 20 });
    const ends = [write('a', { prompt: 'a', max: 8 }), write('wide', { prompt: 'wide', max: 17, outputs: 2 })];
    await Promise.all([...ends, write('b', { prompt: 'b', max: 8 })]);
    expect(of('request-failed')).toEqual([
      {
        type: 'request-failed',
        requestId: 'wide',
        code: 'invalid_request',
        message: 'output 0 takes 21 slots, and this worker has room for 20',
      },
    ]);
    expect([textOf('a'), textOf('b')]).toEqual([expect.any(String), expect.any(String)]);
    expect(pipeline.allocated.size).toBe(0);
  });
});

describe('releases each row once', () => {
  const long = { prompt: 'a wish', max: 40 };

  it.each<[string, WriterInput, EngineEvent['type']]>([
    ['done', { ...long, outputs: 3 }, 'request-done'],
    ['failed in a step', { ...long, outputs: 3, failAt: 2 }, 'request-failed'],
    ['failed at its end', { ...long, outputs: 3, failsToFinish: true }, 'request-failed'],
    ['too wide', { prompt: 'w', max: 500, outputs: 3 }, 'request-failed'],
  ])('when its request is %s', async (_, input, end) => {
    const { pipeline, engine, write, of } = createWriter({ maxSlots: 100 });
    await write('a', input);
    expect(of(end)).toHaveLength(1);
    await engine.stop();
    expect(pipeline).toMatchObject({ rowCount: 3, releaseCount: 3, allocated: new Set() });
  });

  it('when its request is canceled, with rows writing, reading the prompt and waiting', async () => {
    // Two of a's four rows fit beside b.
    const { pipeline, engine, write, of, textOf, onEvent } = createWriter({ maxSlots: 150 });
    onEvent((event) => {
      if (event.type === 'delta' && event.requestId === 'a') engine.cancel('a');
    });
    await Promise.all([write('b', long), write('a', { ...long, outputs: 4 })]);
    expect(of('request-canceled')).toHaveLength(1);
    expect(of('output', 'a')).toEqual([]);
    expect(textOf('b')).toBeDefined();
    await engine.stop();
    expect(pipeline).toMatchObject({ rowCount: 5, releaseCount: 5, allocated: new Set() });
  });

  it.each([
    ['some rows of b wait', 150, ['a0', 'a1', 'b0']],
    ['all rows of b wait', 100, ['a0', 'a1']],
  ])('when the engine stops, after the checkpoints: %s', async (_, maxSlots, inside) => {
    const { pipeline, engine, of, write, onEvent } = createWriter({ maxSlots });
    const stopping = new Promise<void>((resolve) => {
      onEvent((event) => {
        if (event.type === 'delta' && event.requestId === 'a' && event.offset === 3)
          resolve(engine.stop({ shouldCheckpoint: true }));
      });
    });
    void write('a', { ...long, outputs: 2 });
    void write('b', { ...long, outputs: 3 });
    await stopping;
    expect(of('checkpoint').map(({ requestId, index }) => `${requestId}${index}`)).toEqual(inside);
    expect(engine.status).toEqual({ slots: 0, waitingRequests: 0 });
    expect(pipeline).toMatchObject({ rowCount: 5, releaseCount: 5, allocated: new Set() });
    await pipeline.dispose();
  });
});

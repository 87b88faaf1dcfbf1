import { setImmediate } from 'node:timers/promises';
import { DarkroomError } from '@darkroom/core';
import type { Pipeline, PipelineRow, RowCheckpoint, RowEvent, RowRequest } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { Engine } from './engine.ts';
import type { EngineEvent } from '../executor-event.ts';

/** Rows that append one letter per step, to test the engine without a model of any kind. */
interface LetterRow extends PipelineRow {
  text: string;
  readonly letter: string;
  readonly requestId: string;
  readonly previewEvery: number;
  waits: number;
}

interface LetterInput {
  letter?: string;
  n?: number;
  steps?: number;
  shape?: string;
  previewEvery?: number;
  /** Number of steps that pass before the row writes its first letter. */
  waits?: number;
  /** The step at which the row fails. */
  failAt?: number;
}

const encoder = new TextEncoder();

function createHarness({
  maxSlots = 4,
  checkpointEvery = 0,
  fitsAtOnce = Infinity,
  fitsMemory = undefined as Pipeline<LetterRow>['fitsMemory'],
} = {}) {
  /** The letters of each model call. */
  const calls: string[] = [];
  /** Ids in the order in which their rows are created, with `settle` after each round. */
  const admissions: string[] = [];
  const events: EngineEvent[] = [];
  /** Hooks that run once, on the first matching event: actions between two steps. */
  const onceSeen: { find: (event: EngineEvent) => boolean; act: () => void }[] = [];
  const failAt = new WeakMap<LetterRow, number | undefined>();

  const pipeline: Pipeline<LetterRow> = {
    card: { id: 'letters' } as Pipeline['card'],
    components: [],
    createRows({ id, input, indexes, checkpoints }: RowRequest) {
      const {
        letter = id,
        n = 1,
        steps = 2,
        shape = 'line',
        previewEvery = 0,
        failAt: at,
        waits = 0,
      } = input as LetterInput;
      if (letter === '') throw new DarkroomError('invalid_request', 'test', 'no letter');
      const all = indexes ?? Array.from({ length: n }, (_, index) => index);
      const rows = all.map((index): LetterRow => {
        const text = new TextDecoder().decode(checkpoints?.get(index)?.data);
        return {
          requestId: id,
          index,
          shapeKey: shape,
          slots: 1,
          letter,
          text,
          previewEvery,
          waits,
          get stepsLeft() {
            return steps - this.text.length;
          },
          get isDone() {
            return this.stepsLeft === 0;
          },
        };
      });
      for (const row of rows) failAt.set(row, at);
      admissions.push(id);
      return Promise.resolve(rows);
    },
    settle() {
      admissions.push('settle');
      return Promise.resolve();
    },
    step(rows) {
      if (rows.length > fitsAtOnce) {
        return Promise.reject(new DarkroomError('out_of_memory', 'test', 'too many', new Error('CUDA: layer 7')));
      }
      calls.push(rows.map(({ letter }) => letter).join(''));
      const present = rows.filter((row) => row.waits-- <= 0);
      for (const row of present) row.text += row.letter;
      const failed = rows.filter((row) => failAt.get(row) === row.text.length);
      const error = new DarkroomError('engine_failed', 'test', 'not a number');
      return Promise.resolve({
        modelRows: rows.length * 2,
        tokens: { read: 0, cached: 0, written: present.length, calls: rows.length },
        events: new Map(present.map((row) => [row, [progressOf(row)]])),
        failures: new Map(failed.map((row) => [row, error])),
      });
    },
    finish({ text }) {
      if (text.startsWith('!')) return Promise.reject(new TypeError('/secret/path'));
      return Promise.resolve({ data: encoder.encode(text), facts: { length: text.length } });
    },
    checkpoint: ({ text }): RowCheckpoint => ({ done: text.length, data: encoder.encode(text) }),
    release() {},
    ...(fitsMemory && { fitsMemory }),
    dispose: () => Promise.resolve(),
  };

  const ended = new Map<string, () => void>();
  const engine = new Engine({
    pipeline,
    maxSlots,
    checkpointEvery,
    now: () => 0,
    onEvents(batch) {
      for (const event of batch) {
        events.push(event);
        for (const hook of onceSeen.splice(0)) {
          if (hook.find(event)) hook.act();
          else onceSeen.push(hook);
        }
        if (event.type.startsWith('request-')) ended.get((event as { requestId: string }).requestId)?.();
      }
    },
  });
  const submit = (id: string, input: LetterInput = {}, more: Partial<RowRequest> = {}) => {
    const promise = new Promise<void>((resolve) => ended.set(id, resolve));
    engine.submit([{ id, input, ...more }]);
    return promise;
  };
  const when = (find: (event: EngineEvent) => boolean, act: () => void): void => {
    onceSeen.push({ find, act });
  };
  const eventLines = () => events.filter(({ type }) => type !== 'stats').map(describeEvent);
  return { engine, submit, when, calls, admissions, events, eventLines };
}

function progressOf({ text, stepsLeft, isDone, previewEvery }: LetterRow): RowEvent {
  const { length: done } = text;
  const progress = { type: 'progress', done, total: done + stepsLeft! } as const;
  const isPreviewDue = previewEvery > 0 && done % previewEvery === 0 && !isDone;
  return isPreviewDue ? { ...progress, preview: { data: encoder.encode(text), facts: {} } } : progress;
}

const text = (data: Uint8Array) => new TextDecoder().decode(data);

function describeEvent(event: EngineEvent): string {
  if (event.type === 'stats') return 'stats';
  const where = 'index' in event ? `${event.requestId}${event.index}` : event.requestId;
  if (event.type === 'progress') {
    return `${where} ${event.done}/${event.total}${event.preview ? ` ${text(event.preview.data)}` : ''}`;
  }
  if (event.type === 'output') return `${where} output ${text(event.output.data)}`;
  if (event.type === 'delta' || event.type === 'snapshot') return `${where} ${event.type} ${event.text}`;
  if (event.type === 'checkpoint') return `${where} checkpoint ${event.checkpoint.done}`;
  if (event.type === 'request-failed') return `${where} failed ${event.code} ${event.message}`;
  return `${where} ${event.type}`;
}

describe('the engine', () => {
  it('emits the events of each step in order', async () => {
    const { submit, eventLines, events } = createHarness({ checkpointEvery: 2 });
    await submit('a', { n: 2, steps: 5, previewEvery: 2 });
    expect(eventLines()).toEqual([
      'a0 1/5',
      'a1 1/5',
      'a0 2/5 aa',
      'a1 2/5 aa',
      'a0 checkpoint 2',
      'a1 checkpoint 2',
      'a0 3/5',
      'a1 3/5',
      'a0 4/5 aaaa',
      'a0 row-releasing',
      'a1 4/5 aaaa',
      'a1 row-releasing',
      'a0 checkpoint 4',
      'a1 checkpoint 4',
      'a0 5/5',
      'a1 5/5',
      'a0 output aaaaa',
      'a1 output aaaaa',
      'a request-done',
    ]);
    const stats = {
      type: 'stats',
      shapeKey: expect.any(String),
      rows: 2,
      modelRows: 4,
      tokens: { read: 0, cached: 0, written: 2, calls: 2 },
      tableSlots: 2,
      waitingRequests: 0,
      stepMs: 0,
    };
    expect(events.filter(({ type }) => type === 'stats')).toEqual(Array.from({ length: 5 }, () => stats));
  });

  it('lets rows join and leave between any two steps', async () => {
    const { submit, when, calls } = createHarness();
    const others: Promise<void>[] = [];
    when(
      (event) => event.type === 'progress' && event.done === 2,
      () => others.push(submit('b', { steps: 2 })),
    );
    await submit('a', { steps: 5 });
    await Promise.all(others);
    expect(calls).toEqual(['a', 'a', 'ab', 'ab', 'a']);
  });

  it('announces the last step early enough that a waiting row runs in the next step', async () => {
    const { submit, when, calls } = createHarness({ maxSlots: 1 });
    const others: Promise<void>[] = [];
    when(
      (event) => event.type === 'row-releasing',
      () => others.push(submit('b')),
    );
    await submit('a');
    await Promise.all(others);
    expect(calls).toEqual(['a', 'a', 'b', 'b']);
  });

  it('announces the last step of a row with a single step before that step', async () => {
    const { submit, eventLines } = createHarness();
    await submit('a', { steps: 1 });
    expect(eventLines()).toEqual(['a0 row-releasing', 'a0 1/1', 'a0 output a', 'a request-done']);
  });

  it('announces the last step once, even if the row is idle before it', async () => {
    const { submit, eventLines } = createHarness();
    await submit('a', { steps: 1, waits: 3 });
    expect(eventLines()).toEqual(['a0 row-releasing', 'a0 1/1', 'a0 output a', 'a request-done']);
  });

  it('queues rows beyond maxSlots in order, also part of a request', async () => {
    const { submit, calls } = createHarness({ maxSlots: 2 });
    await Promise.all([submit('a', { n: 1, steps: 1 }), submit('b', { n: 3, steps: 1 }), submit('c', { steps: 1 })]);
    expect(calls).toEqual(['ab', 'bb', 'c']);
  });

  it('queues a row that does not fit in memory, unless the table is empty', async () => {
    const { submit, calls } = createHarness({
      fitsMemory: (row, others) => row.letter !== 'b' && others.every(({ letter }) => letter !== 'b'),
    });
    await Promise.all(['a', 'c', 'b', 'd'].map((id) => submit(id, { steps: 1 })));
    expect(calls).toEqual(['ac', 'b', 'd']);
  });

  it('steps every shape once per tick', async () => {
    const { submit, calls } = createHarness();
    await Promise.all([
      submit('a', { n: 2, steps: 3 }),
      submit('b', { shape: 'other', steps: 3 }),
      submit('c', { steps: 3 }),
    ]);
    expect(calls).toEqual(['aac', 'b', 'aac', 'b', 'aac', 'b']);
  });

  it('removes a canceled request after the current step and admits the next', async () => {
    const { engine, submit, when, calls, eventLines } = createHarness({ maxSlots: 2 });
    when(
      (event) => event.type === 'progress' && event.requestId === 'a' && event.done === 2,
      () => engine.cancel('a'),
    );
    await Promise.all([submit('a', { n: 2, steps: 9 }), submit('b', { steps: 1 })]);
    expect(calls).toEqual(['aa', 'aa', 'b']);
    expect(
      eventLines()
        .filter((line) => line.startsWith('a'))
        .at(-1),
    ).toBe('a request-canceled');
  });

  it('cancels a waiting request', async () => {
    const { engine, submit, calls, eventLines } = createHarness({ maxSlots: 1 });
    const both = [submit('a'), submit('b')];
    engine.cancel('b');
    engine.cancel('nobody');
    await Promise.all(both);
    expect(calls).toEqual(['a', 'a']);
    expect(eventLines()[0]).toBe('b request-canceled');
  });

  it('fails a request with all its rows once, and continues the others', async () => {
    const { submit, calls, eventLines } = createHarness();
    await Promise.all([submit('a', { n: 2, steps: 4, failAt: 2 }), submit('b', { steps: 3 })]);
    expect(calls).toEqual(['aab', 'aab', 'b']);
    expect(eventLines().filter((line) => line.startsWith('a'))).toEqual([
      'a0 1/4',
      'a1 1/4',
      'a failed engine_failed not a number',
    ]);
    expect(eventLines().at(-2)).toBe('b0 output bbb');
  });

  it('fails a request whose rows cannot be created or finished with a message that is safe to show', async () => {
    const { submit, eventLines, events } = createHarness();
    for (const letter of ['', '!']) await submit(letter === '' ? 'a' : 'b', { letter, steps: 1 });
    expect(eventLines()).toContain('a failed invalid_request no letter');
    expect(eventLines()).toContain('b failed internal the engine failed');
    expect(events).toContainEqual(expect.objectContaining({ cause: expect.stringMatching(/^\w*Error: .+ at /s) }));
  });

  it('halves a batch that runs out of memory', async () => {
    const { submit, calls, eventLines, events } = createHarness({ fitsAtOnce: 2 });
    await Promise.all([submit('a', { n: 3, steps: 1 }), submit('b', { steps: 1 })]);
    expect(calls).toEqual(['aa', 'ab']);
    expect(eventLines()).toContain('b request-done');
    const counted = { modelRows: 8, tokens: { read: 0, cached: 0, written: 4, calls: 4 } };
    expect(events.filter(({ type }) => type === 'stats')).toEqual([expect.objectContaining(counted)]);
  });

  it('fails a request whose single row runs out of memory', async () => {
    const { submit, eventLines, events } = createHarness({ fitsAtOnce: 0 });
    await submit('a', { n: 2 });
    expect(eventLines()).toEqual(['a failed out_of_memory too many']);
    expect(events.at(-1)).toHaveProperty('cause', expect.stringContaining('CUDA: layer 7'));
  });

  it('accepts requests after an empty submit', async () => {
    const { engine, submit, eventLines } = createHarness();
    engine.submit([]);
    await submit('a', { steps: 1 });
    expect(eventLines().at(-1)).toBe('a request-done');
  });

  it('ignores a request that is delivered again', async () => {
    const { submit, calls } = createHarness();
    void submit('a', { steps: 1 });
    await submit('a', { steps: 1 });
    expect(calls).toEqual(['a']);
  });

  it('computes only the requested outputs, resuming from their checkpoints', async () => {
    const { submit, eventLines } = createHarness();
    const checkpoints = new Map([[2, { done: 2, data: encoder.encode('aa') }]]);
    await submit('a', { n: 3, steps: 3 }, { indexes: [0, 2], checkpoints });
    expect(eventLines()).toEqual([
      'a2 row-releasing',
      'a0 1/3',
      'a2 3/3',
      'a2 output aaa',
      'a0 2/3',
      'a0 row-releasing',
      'a0 3/3',
      'a0 output aaa',
      'a request-done',
    ]);
  });

  it('finishes rows whose checkpoint is complete, and requests without outputs to compute', async () => {
    const { submit, eventLines, calls } = createHarness();
    await submit('a', { steps: 2 }, { checkpoints: new Map([[0, { done: 2, data: encoder.encode('aa') }]]) });
    await submit('b', {}, { indexes: [] });
    expect(eventLines()).toEqual(['a0 output aa', 'a request-done', 'b request-done']);
    expect(calls).toEqual([]);
  });

  it('stops after the current step and emits checkpoints of all rows', async () => {
    const { engine, submit, when, calls, eventLines } = createHarness({ maxSlots: 2 });
    let stopped: Promise<void> | undefined;
    when(
      (event) => event.type === 'progress' && event.requestId === 'b' && event.done === 2,
      () => {
        stopped = engine.stop({ shouldCheckpoint: true });
      },
    );
    void submit('a', { steps: 9 });
    void submit('b', { steps: 9, shape: 'other' });
    void submit('c');
    await new Promise<void>((resolve) => when((event) => event.type === 'checkpoint', resolve));
    await stopped;
    expect(calls).toEqual(['a', 'b', 'a', 'b']);
    expect(eventLines().slice(-2)).toEqual(['a0 checkpoint 2', 'b0 checkpoint 2']);
    expect(engine.status.slots).toBe(0);
    engine.submit([{ id: 'd', input: {} }]);
    expect(calls).toHaveLength(4);
  });

  it('emits no checkpoint on stop for rows that have taken no step', async () => {
    const { engine, submit, when, calls, eventLines } = createHarness({ maxSlots: 2 });
    let stopped: Promise<void> | undefined;
    const isStopping = new Promise<void>((resolve) =>
      when(
        ({ type }) => type === 'progress',
        () => {
          stopped = engine.stop({ shouldCheckpoint: true });
          resolve();
        },
      ),
    );
    void submit('a', { steps: 9 });
    void submit('b', { steps: 9, shape: 'other' });
    await isStopping;
    await stopped;
    expect(calls).toEqual(['a']);
    expect(eventLines().filter((line) => line.includes('checkpoint'))).toEqual(['a0 checkpoint 1']);
  });

  it('emits no output of a request that is canceled while its row finishes', async () => {
    const { engine, submit, when, eventLines } = createHarness();
    when(
      (event) => event.type === 'progress' && event.done === 2,
      () => engine.cancel('a'),
    );
    await submit('a', { steps: 2 });
    expect(eventLines().at(-1)).toBe('a request-canceled');
    expect(eventLines().join()).not.toContain('output');
  });

  it('waits for the listener before the next step', async () => {
    const releases: (() => void)[] = [];
    const { pipelineCalls, engine } = createSlowListener((resolve) => releases.push(resolve));
    engine.submit([{ id: 'a', input: {} }]);
    for (const tick of [1, 2, 3]) {
      for (let idle = 0; idle < 10; idle++) await setImmediate();
      expect(pipelineCalls()).toBe(tick);
      releases.pop()!();
    }
  });

  it('calls settle once after each round of created rows', async () => {
    const { submit, admissions } = createHarness({ maxSlots: 2 });
    await Promise.all([submit('a'), submit('b'), submit('c', { letter: '' }), submit('d')]);
    expect(admissions).toEqual(['a', 'b', 'settle', 'd', 'settle']);
  });

  it('rejects maxSlots of 0', () => {
    expect(() => createHarness({ maxSlots: 0 })).toThrow(RangeError);
  });
});

function createSlowListener(hold: (release: () => void) => void) {
  let calls = 0;
  const row = { index: 0, shapeKey: '', slots: 1, isDone: false };
  const pipeline = {
    createRows: () => Promise.resolve([row]),
    settle: () => Promise.resolve(),
    step: () => {
      calls += 1;
      return Promise.resolve({ modelRows: 1, events: new Map(), failures: new Map() });
    },
  } as unknown as Pipeline;
  const onEvents = () => new Promise<void>(hold);
  return { pipelineCalls: () => calls, engine: new Engine({ pipeline, maxSlots: 1, onEvents }) };
}

import { setImmediate } from 'node:timers/promises';
import { DarkroomError } from '@darkroom/core';
import type { Pipeline, PipelineRow, RowCheckpoint, RowEvent, RowRequest } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { Engine } from './engine.ts';
import type { EngineEvent } from '../executor-event.ts';

/** Rows that write one letter a step: nothing about the engine is about pictures. */
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
  /** Steps that it lets pass before it begins. */
  waits?: number;
  /** The step at which the row fails. */
  failAt?: number;
}

const encoder = new TextEncoder();

function createHarness({
  maxSlots = 4,
  checkpointEvery = 0,
  fitsAtOnce = Infinity,
  hasRoomFor = undefined as Pipeline<LetterRow>['hasRoomFor'],
} = {}) {
  /** The letters of each model call. */
  const calls: string[] = [];
  /** Ids as their rows are made, and `settle` after a round of them. */
  const admissions: string[] = [];
  const events: EngineEvent[] = [];
  /** Called after each batch of events: what happens between two steps. */
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
        return Promise.reject(new DarkroomError('out_of_memory', 'test', 'too many'));
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
    ...(hasRoomFor && { hasRoomFor }),
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
  const said = () => events.filter(({ type }) => type !== 'stats').map(describeEvent);
  return { engine, submit, when, calls, admissions, events, said };
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
  it('says what happens, in order', async () => {
    const { submit, said, events } = createHarness({ checkpointEvery: 2 });
    await submit('a', { n: 2, steps: 5, previewEvery: 2 });
    expect(said()).toEqual([
      'a0 1/5',
      'a1 1/5',
      'a0 2/5 aa',
      'a0 checkpoint 2',
      'a1 2/5 aa',
      'a1 checkpoint 2',
      'a0 3/5',
      'a1 3/5',
      'a0 4/5 aaaa',
      'a0 row-releasing',
      'a0 checkpoint 4',
      'a1 4/5 aaaa',
      'a1 row-releasing',
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

  it('lets rows join and leave at any boundary', async () => {
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

  it('has a replacement in time for the step after the last', async () => {
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

  it('announces a row that has one step only before it is taken', async () => {
    const { submit, said } = createHarness();
    await submit('a', { steps: 1 });
    expect(said()).toEqual(['a0 row-releasing', 'a0 1/1', 'a0 output a', 'a request-done']);
  });

  it('announces a row once, though it waits with its last step', async () => {
    const { submit, said } = createHarness();
    await submit('a', { steps: 1, waits: 3 });
    expect(said()).toEqual(['a0 row-releasing', 'a0 1/1', 'a0 output a', 'a request-done']);
  });

  it('lets what does not fit wait, first come first served, also by halves', async () => {
    const { submit, calls } = createHarness({ maxSlots: 2 });
    await Promise.all([submit('a', { n: 1, steps: 1 }), submit('b', { n: 3, steps: 1 }), submit('c', { steps: 1 })]);
    expect(calls).toEqual(['ab', 'bb', 'c']);
  });

  it('lets what there is no memory for wait, unless it is alone', async () => {
    const { submit, calls } = createHarness({
      hasRoomFor: (row, others) => row.letter !== 'b' && others.every(({ letter }) => letter !== 'b'),
    });
    await Promise.all(['a', 'c', 'b', 'd'].map((id) => submit(id, { steps: 1 })));
    expect(calls).toEqual(['ac', 'b', 'd']);
  });

  it('steps every shape once a turn', async () => {
    const { submit, calls } = createHarness();
    await Promise.all([
      submit('a', { n: 2, steps: 3 }),
      submit('b', { shape: 'other', steps: 3 }),
      submit('c', { steps: 3 }),
    ]);
    expect(calls).toEqual(['aac', 'b', 'aac', 'b', 'aac', 'b']);
  });

  it('takes a canceled request out at the next boundary, and lets the next in', async () => {
    const { engine, submit, when, calls, said } = createHarness({ maxSlots: 2 });
    when(
      (event) => event.type === 'progress' && event.requestId === 'a' && event.done === 2,
      () => engine.cancel('a'),
    );
    await Promise.all([submit('a', { n: 2, steps: 9 }), submit('b', { steps: 1 })]);
    expect(calls).toEqual(['aa', 'aa', 'b']);
    expect(
      said()
        .filter((line) => line.startsWith('a'))
        .at(-1),
    ).toBe('a request-canceled');
  });

  it('cancels what waits', async () => {
    const { engine, submit, calls, said } = createHarness({ maxSlots: 1 });
    const both = [submit('a'), submit('b')];
    engine.cancel('b');
    engine.cancel('nobody');
    await Promise.all(both);
    expect(calls).toEqual(['a', 'a']);
    expect(said()[0]).toBe('b request-canceled');
  });

  it('fails a request once, with all its rows, and leaves the others alone', async () => {
    const { submit, calls, said } = createHarness();
    await Promise.all([submit('a', { n: 2, steps: 4, failAt: 2 }), submit('b', { steps: 3 })]);
    expect(calls).toEqual(['aab', 'aab', 'b']);
    expect(said().filter((line) => line.startsWith('a'))).toEqual([
      'a0 1/4',
      'a1 1/4',
      'a failed engine_failed not a number',
    ]);
    expect(said().at(-2)).toBe('b0 output bbb');
  });

  it('fails what cannot be made or ended, in words that are safe to show', async () => {
    const { submit, said, events } = createHarness();
    for (const letter of ['', '!']) await submit(letter === '' ? 'a' : 'b', { letter, steps: 1 });
    expect(said()).toContain('a failed invalid_request no letter');
    expect(said()).toContain('b failed internal the engine failed');
    expect(events).toContainEqual(expect.objectContaining({ cause: expect.stringMatching(/^\w*Error: .+ at /s) }));
  });

  it('halves a batch that does not fit into memory', async () => {
    const { submit, calls, said, events } = createHarness({ fitsAtOnce: 2 });
    await Promise.all([submit('a', { n: 3, steps: 1 }), submit('b', { steps: 1 })]);
    expect(calls).toEqual(['aa', 'ab']);
    expect(said()).toContain('b request-done');
    const counted = { modelRows: 8, tokens: { read: 0, cached: 0, written: 4, calls: 4 } };
    expect(events.filter(({ type }) => type === 'stats')).toEqual([expect.objectContaining(counted)]);
  });

  it('fails only those rows for which there is no memory at all', async () => {
    const { submit, said } = createHarness({ fitsAtOnce: 0 });
    await submit('a', { n: 2 });
    expect(said()).toEqual(['a failed out_of_memory too many']);
  });

  it('goes on after it was given nothing', async () => {
    const { engine, submit, said } = createHarness();
    engine.submit([]);
    await submit('a', { steps: 1 });
    expect(said().at(-1)).toBe('a request-done');
  });

  it('takes a request that is delivered twice once', async () => {
    const { submit, calls } = createHarness();
    const first = submit('a', { steps: 1 });
    void first;
    await submit('a', { steps: 1 });
    expect(calls).toEqual(['a']);
  });

  it('makes only the outputs asked for, from where their checkpoints are', async () => {
    const { submit, said } = createHarness();
    const checkpoints = new Map([[2, { done: 2, data: encoder.encode('aa') }]]);
    await submit('a', { n: 3, steps: 3 }, { indexes: [0, 2], checkpoints });
    expect(said()).toEqual([
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

  it('ends rows that come in done, and requests with nothing left to make', async () => {
    const { submit, said, calls } = createHarness();
    await submit('a', { steps: 2 }, { checkpoints: new Map([[0, { done: 2, data: encoder.encode('aa') }]]) });
    await submit('b', {}, { indexes: [] });
    expect(said()).toEqual(['a0 output aa', 'a request-done', 'b request-done']);
    expect(calls).toEqual([]);
  });

  it('stops after the step under way, with checkpoints of all rows', async () => {
    const { engine, submit, when, calls, said } = createHarness({ maxSlots: 2 });
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
    expect(said().slice(-2)).toEqual(['a0 checkpoint 2', 'b0 checkpoint 2']);
    expect(engine.status.slots).toBe(0);
    engine.submit([{ id: 'd', input: {} }]);
    expect(calls).toHaveLength(4);
  });

  it('stops without checkpoints of rows that have taken no step', async () => {
    const { engine, submit, when, calls, said } = createHarness({ maxSlots: 2 });
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
    expect(said().filter((line) => line.includes('checkpoint'))).toEqual(['a0 checkpoint 1']);
  });

  it('says no output of what was canceled while it was made', async () => {
    const { engine, submit, when, said } = createHarness();
    when(
      (event) => event.type === 'progress' && event.done === 2,
      () => engine.cancel('a'),
    );
    await submit('a', { steps: 2 });
    expect(said().at(-1)).toBe('a request-canceled');
    expect(said().join()).not.toContain('output');
  });

  it('waits for the listener before the next step', async () => {
    const releases: (() => void)[] = [];
    const { pipelineCalls, engine } = createSlowListener((resolve) => releases.push(resolve));
    engine.submit([{ id: 'a', input: {} }]);
    for (const turn of [1, 2, 3]) {
      for (let idle = 0; idle < 10; idle++) await setImmediate();
      expect(pipelineCalls()).toBe(turn);
      releases.pop()!();
    }
  });

  it('lets the pipeline settle once after each round of rows made', async () => {
    const { submit, admissions } = createHarness({ maxSlots: 2 });
    await Promise.all([submit('a'), submit('b'), submit('c', { letter: '' }), submit('d')]);
    expect(admissions).toEqual(['a', 'b', 'settle', 'd', 'settle']);
  });

  it('refuses to have no room at all', () => {
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

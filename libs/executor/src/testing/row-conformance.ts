/** Conformance tests for executors that step rows: shared steps, row-releasing and checkpoints. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RowCheckpoint, RowRequest } from '@darkroom/core';
import type { ExecutorListener } from '../executor-event.ts';
import type { Executor } from '../executor.ts';
import { EventLog } from '../conformance/event-log.ts';
import type { ExecutorSubject } from '../conformance/executor-conformance.ts';

/** The executor must fit exactly three short inputs, and emit a checkpoint of each row after every second step. */
export interface RowSubject extends Pick<ExecutorSubject, 'shortInput' | 'longInput'> {
  create: (onEvents: ExecutorListener) => Executor;
}

/** Defines the tests. Call at the top level of a Vitest file. */
export function describeRows(name: string, subject: RowSubject): void {
  describe(`the rows of the executor ${name}`, () => {
    const log = new EventLog();
    const executor = subject.create(log.listener);
    beforeAll(() => executor.start());
    afterAll(() => executor.shutdown());
    beforeEach(() => {
      log.events = [];
    });

    async function outputOf(request: RowRequest): Promise<Buffer> {
      executor.submit([request]);
      await log.end(request.id);
      return log.outputs(request.id).get(0)!;
    }
    const short = (id: string, number = 1, outputs = 1): RowRequest => ({
      id,
      input: subject.shortInput({ number, outputs }),
    });

    it('share steps, and wait in order for free slots', async () => {
      executor.submit(['a', 'b', 'c'].map((id) => short(id, 1, 2)));
      await log.end('c');
      const stats = log.of('stats');
      expect(Math.max(...stats.map(({ rows }) => rows))).toBe(3);
      expect(stats.some(({ waitingRequests }) => waitingRequests > 0)).toBe(true);
      expect(log.of('request-done').map(({ requestId }) => requestId)).toEqual(['a', 'b', 'c']);
    });

    it('emit row-releasing at most once, before the output', async () => {
      executor.submit([short('a', 1, 2)]);
      await log.end('a');
      for (const index of [0, 1]) {
        const types = log.events.flatMap((event) => ('index' in event && event.index === index ? [event.type] : []));
        expect(types.filter((type) => type === 'row-releasing').length).toBeLessThanOrEqual(1);
        expect(types.at(-1)).toBe('output');
      }
    });

    it('resume from a checkpoint to the same bytes', async () => {
      const whole = await outputOf(short('whole'));
      const checkpoints = log.of('checkpoint').map(({ checkpoint }) => checkpoint);
      expect(checkpoints.length).toBeGreaterThan(1);
      for (const [at, checkpoint] of checkpoints.entries()) {
        const id = `resumed ${at}`;
        const resumed = await outputOf({ ...short(id), checkpoints: new Map([[0, structuredClone(checkpoint)]]) });
        expect(resumed).toEqual(whole);
        expect(log.of('progress', id)[0]?.done ?? Infinity).toBeGreaterThan(checkpoint.done);
      }
    });

    it('ignore an invalid checkpoint', async () => {
      const whole = await outputOf(short('whole'));
      const other: RowCheckpoint = { done: 1, data: new Uint8Array(0) };
      expect(await outputOf({ ...short('again'), checkpoints: new Map([[0, other]]) })).toEqual(whole);
    });

    it('emit checkpoints on shutdown, from which another executor resumes', async () => {
      executor.submit([{ id: 'long', input: subject.longInput }]);
      await log.firstProgress('long');
      await executor.shutdown({ shouldCheckpoint: true });
      expect(log.events.at(-1)).toMatchObject({ type: 'checkpoint', requestId: 'long' });
      const { checkpoint, index } = log.of('checkpoint').at(-1)!;
      await executor.start();
      log.events = [];
      const checkpoints = new Map([[index, checkpoint]]);
      executor.submit([{ id: 'long', input: subject.longInput, indexes: [index], checkpoints }]);
      const { done } = (await log.next(({ type }) => type === 'progress')) as { done: number };
      expect(done).toBe(checkpoint.done + 1);
      executor.cancel('long');
      await log.end('long');
    });
  });
}

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { askWorker, findWorkers, readAnswers, type WorkerCommand, type WorkerName } from '@darkroom/store';
import type { ApiContext } from '../context.ts';

const lookIntervalMs = 50;

/** What came of a call, worker by worker; undefined: it did not answer in time. */
export type WorkerAnswer = WorkerName & { answer: object | undefined };

/** Calls a worker, or all of a start of the program (see `findWorkers`), and waits for their answers no longer than `callWaitMs`. */
export async function callWorkers(
  { askStore, callWaitMs }: ApiContext,
  worker: string,
  command: WorkerCommand,
): Promise<WorkerAnswer[]> {
  const call = randomUUID();
  const workers = await askStore(async (store) => {
    const found = await findWorkers(store, worker);
    const areThere = await Promise.all(found.map((each) => askWorker(store, each, command, { call })));
    return found.filter((_each, at) => areThere[at]);
  });
  const untilMs = performance.now() + callWaitMs;
  for (;;) {
    const answers = await askStore((store) => readAnswers(store, workers, call));
    if (answers.every((answer) => answer !== undefined) || performance.now() >= untilMs)
      return workers.map((each, at) => ({ ...each, answer: answers[at] }));
    await delay(lookIntervalMs);
  }
}

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { sendCommand, findWorkers, readAnswers, type OperatorMessage, type WorkerName } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';

const pollIntervalMs = 50;

/** Reply of a worker to a call; undefined if it did not answer in time. */
export type WorkerAnswer = WorkerName & { answer: object | undefined };

/**
 * Sends a command to a worker, or all of one program start (see `findWorkers`); waits at most `callWaitMs` for replies.
 */
export async function callWorkers(
  { withStore, callWaitMs }: ApiContext,
  worker: string,
  command: Omit<OperatorMessage, 'call'>,
): Promise<WorkerAnswer[]> {
  const call = randomUUID();
  const workers = await withStore(async (store) => {
    const found = await findWorkers(store, worker);
    const areThere = await Promise.all(found.map((each) => sendCommand(store, each, { ...command, call })));
    return found.filter((_each, at) => areThere[at]);
  });
  const untilMs = performance.now() + callWaitMs;
  for (;;) {
    const answers = await withStore((store) => readAnswers(store, workers, call));
    if (answers.every((answer) => answer !== undefined) || performance.now() >= untilMs)
      return workers.map((each, at) => ({ ...each, answer: answers[at] }));
    await delay(pollIntervalMs);
  }
}

// What the servers and modules of the chaos run write: a text that tells each run from every other.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

const pauseMs = 4;

/** `<run>:0 <run>:1 …`, one after the other. */
export async function* words(count, signal) {
  const run = randomUUID().slice(0, 8);
  for (let at = 0; at < count; at++) {
    await delay(pauseMs, undefined, { signal });
    yield `${run}:${at} `;
  }
}

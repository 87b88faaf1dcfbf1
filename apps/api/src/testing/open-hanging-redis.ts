import { EventEmitter, once } from 'node:events';
import { connectStore, type EventHub } from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { onTestFinished } from 'vitest';
import { holdPatience } from './hold-patience.ts';

/**
 * A Redis of a test's own, that hangs when the test says, and its store.
 *
 * @param waitMs how long an API waits for it, which `runOut` lets pass.
 */
export async function openHangingRedis(waitMs: number) {
  const redis = await startPrivateRedis();
  const store = connectStore({ url: redis.url });
  const hang = (): void => void redis.process.kill('SIGSTOP');
  const goOn = (): void => void redis.process.kill('SIGCONT');
  onTestFinished(async () => {
    goOn();
    await store.close();
    await redis.stop();
  });
  // Connected before time is held.
  await store.redis.ping();
  const hanging = new EventEmitter();
  const hangs = once(hanging, 'output');
  /** The event of an output comes through, and the output cannot be read. */
  const hangAtOutput = (hub: EventHub): EventHub => ({
    ...hub,
    subscribe: (id, listener) =>
      hub.subscribe(id, (event) => {
        if (event.type === 'output') hang();
        listener(event);
        if (event.type === 'output') hanging.emit('output');
      }),
  });
  return { store, hang, goOn, runOut: holdPatience(waitMs), hangAtOutput, /** At the first output. */ hangs };
}

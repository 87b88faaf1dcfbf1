import { EventEmitter, once } from 'node:events';
import { connectStore, type EventHub } from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { onTestFinished } from 'vitest';
import { holdRedisTimeout } from './hold-redis-timeout.ts';

/**
 * Starts a private Redis that the test can suspend, with a store on it.
 *
 * @param waitMs the API's timeout for Redis, which `runOut` lets pass.
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
  // Connect before the timers are faked.
  await store.redis.ping();
  const hanging = new EventEmitter();
  const hangs = once(hanging, 'output');
  /** Suspends Redis when the event of an output arrives, so that the output cannot be read. */
  const hangAtOutput = (hub: EventHub): EventHub => ({
    ...hub,
    subscribe: (id, listener) =>
      hub.subscribe(id, (event) => {
        if (event.type === 'output') hang();
        listener(event);
        if (event.type === 'output') hanging.emit('output');
      }),
  });
  return {
    store,
    hang,
    goOn,
    runOut: holdRedisTimeout(waitMs),
    hangAtOutput,
    /** Resolves at the first output. */ hangs,
  };
}

/** What a request costs in commands to Redis: the numbers of docs/architecture.md. */
import { expect, it, vi } from 'vitest';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

/** Commands sent while `act` runs, in lower case; a script goes by `evalsha`. */
async function commandsOf({ store }: TestApi, act: () => Promise<unknown>): Promise<string[]> {
  const send = vi.spyOn(store.redis, 'sendCommand');
  try {
    await act();
    return send.mock.calls.map(([command]) => command.name.toLowerCase());
  } finally {
    send.mockRestore();
  }
}

it('a poll is one round trip, whatever the state', async () => {
  const app = await openTestApi();
  const id = await app.submit();
  await app.api.request(`/v1/predict/${id}`);
  expect(await commandsOf(app, async () => app.api.request(`/v1/predict/${id}`))).toEqual(['evalsha']);
  await app.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  expect(await commandsOf(app, async () => app.api.request(`/v1/predict/${id}`))).toEqual(['evalsha']);
});

it('a submit is two round trips, and a wake-up that nobody waits for', async () => {
  // The models are asked for again after a second.
  const nowMs = Date.now();
  const app = await openTestApi({ clock: { now: () => nowMs } });
  await app.submit();
  expect(await commandsOf(app, () => app.submit())).toEqual(['evalsha', 'evalsha', 'publish']);
});

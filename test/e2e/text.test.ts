/** Texts through the whole system, with the writers that are in the box. */
import { expect, it } from 'vitest';
import { startSystem, stopSystem } from './system.ts';

it('writes', async () => {
  const system = await startSystem({ parts: ['api', 'batch-former', 'janitor'] });
  try {
    await Promise.all(
      ['models/emoji-writer', 'models/emoji-writer-diffusion'].map((dir) => system.start('worker', { MODEL_DIR: dir })),
    );
    for (const model of ['emoji-writer', 'emoji-writer-diffusion']) {
      const post = await fetch(`${system.url}/v1/predict`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', prefer: 'wait=20' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'something sweet for a birthday party' }] }),
      });
      const body = (await post.json()) as { request_id: string };
      console.log(post.status, JSON.stringify(body));
      const events = await fetch(`${system.url}/v1/predict/${body.request_id}/events`);
      console.log(await events.text());
    }
    console.log(await (await fetch(`${system.url}/v1/models`)).text());
    expect(1).toBe(1);
  } finally {
    await stopSystem(system);
  }
});

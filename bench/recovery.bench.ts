/** How long a request waits when its worker is killed (SIGKILL) in mid-picture and the next worker is started at once. */
import { it } from 'vitest';
import { ended, stream, submit } from '../test/e2e/client.ts';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { publish } from './publish.ts';
import { middle } from './report.ts';
import { tableOf } from './table.ts';

const trials = 5;
const body = { prompt: 'a red apple on a white background', num_inference_steps: 60, preview: 'off' };

it('seconds from the kill, and from the return of a worker, until the request runs again', async () => {
  const system = await startSystem();
  const sinceKillS: number[] = [];
  const sinceReturnS: number[] = [];
  const toEndS: number[] = [];
  try {
    for (let trial = 0; trial < trials; trial++) {
      const id = await submit(system.url, body);
      const before = await stream(system.url, id, {
        until: ({ event, data }) => event === 'progress' && (JSON.parse(data) as { step: number }).step >= 20,
      });
      await system.part('worker').kill();
      const killedMs = Date.now();
      await system.start('worker');
      const returnedMs = Date.now();
      const lastEventId = before.at(-1)!.id!;
      await stream(system.url, id, { lastEventId, until: ({ event }) => event === 'started' });
      sinceKillS.push((Date.now() - killedMs) / 1000);
      sinceReturnS.push(Math.max(0, Date.now() - returnedMs) / 1000);
      await ended(system.url, id);
      toEndS.push((Date.now() - returnedMs) / 1000);
    }
  } finally {
    await stopSystem(system);
  }
  publish({
    name: 'recovery',
    title: 'How long a request waits when its worker is killed',
    notes: [
      `SIGKILL in mid-picture (step 20 of ${body.num_inference_steps}), the next worker started at once, ${trials} times; medians, with the least and the most.`,
      'The aim is 5 s at p99.',
      'Until WORKER_TTL_MS (3 s) is over, the killed worker could be alive: that is most of it, or the start of the next worker on a busy machine.',
    ],
    tables: [
      tableOf('Seconds (less is better)', {
        s: {
          'kill to running again': middle(sinceKillS),
          'next worker up to running again': middle(sinceReturnS),
          'next worker up to the picture': middle(toEndS),
        },
      }),
    ],
  });
}, 600_000);

/** Time until a request runs again after its worker is killed (SIGKILL) in mid-image and another is started at once. */
import { it } from 'vitest';
import { ended, stream, submit } from '../test/e2e/client.ts';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { publish } from './publish.ts';
import { medianWithRange } from './report.ts';
import { tableOf } from './table.ts';

const trials = 5;
const body = { prompt: 'a red apple on a white background', num_inference_steps: 60, preview: 'off' };

it('seconds from the kill, and from the start of another worker, until the request runs again', async () => {
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
      `SIGKILL in mid-image (step 20 of ${body.num_inference_steps}), the next worker started at once, ${trials} times; medians, with minimum and maximum.`,
      'The aim is 5 s at p99.',
      'Most of the time is WORKER_TTL_MS (3 s), during which the killed worker may still be alive, or the start of the next worker on a busy machine.',
    ],
    tables: [
      tableOf('Seconds (less is better)', {
        s: {
          'kill to running again': medianWithRange(sinceKillS),
          'next worker up to running again': medianWithRange(sinceReturnS),
          'next worker up to the image': medianWithRange(toEndS),
        },
      }),
    ],
  });
}, 600_000);

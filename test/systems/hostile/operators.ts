/** Cheap attacks that can be repeated without limit: inputs that crash an engine, and wrong keys. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { type AttackGroup, post, type Target } from './attack.ts';

const model = 'crasher';
const module = new URL('../../../libs/executor/src/module/__fixtures__/writer.mjs', import.meta.url).pathname;
const neighbor = { authorization: 'Bearer key-of-the-neighbor', 'content-type': 'application/json' };
const seconds = 20;

/** Requests the neighbor's texts sequentially until the attack ends; returns how each ended. */
async function write({ url }: Target, attack: AbortSignal): Promise<string[]> {
  const ends: string[] = [];
  while (!attack.aborted) {
    const body = JSON.stringify({ model, prompt: 'wish', max_tokens: 20 });
    const response = await fetch(`${url}/v1/predict`, { method: 'POST', headers: neighbor, body });
    const { request_id: id } = (await response.json()) as { request_id: string };
    const events = await fetch(`${url}/v1/predict/${id}/events`, { headers: neighbor });
    ends.push(/event: (?<end>succeeded|failed|expired|canceled)/.exec(await events.text())?.groups?.['end'] ?? 'none');
  }
  return ends;
}

export const operators: AttackGroup = {
  topic: 'crashes and wrong keys',
  attacks: [
    {
      title: 'rate-limits wrong keys by client address, and serves right keys from the same address',
      async run(target) {
        const statuses: number[] = [];
        const flood = async (at: number): Promise<void> => {
          for (let sent = 0; sent < 100; sent++) {
            const headers = { authorization: `Bearer wrong-key-number-${at}-${sent}` };
            const response = await fetch(`${target.url}/v1/models`, { headers });
            await response.text();
            statuses.push(response.status);
            if (response.status === 429) expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
          }
        };
        await Promise.all(Array.from({ length: 2 }, (_value, at) => flood(at)));
        expect(new Set(statuses)).toEqual(new Set([401, 429]));
        // The limit is ten wrong keys per minute; the flood may span two minutes.
        expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(20);
        expect((await fetch(`${target.url}/v1/models`, { headers: target.headers })).status).toBe(200);
      },
    },
    {
      title: 'attributes a crash to the request that caused it, and serves other requests of the model between crashes',
      async run(target) {
        await target.system.start('worker', { EXECUTOR: module, MODEL_ID: model, MODEL_DIRS: '' });
        const over = new AbortController();
        const writing = write(target, over.signal);
        for (let sent = 0; sent < seconds; sent++) {
          const crash = { model, prompt: sent % 2 === 0 ? 'exit' : 'an unhandled rejection', max_tokens: 5 };
          expect((await post(target, '/v1/predict', crash)).status).toBe(202);
          await delay(1000);
        }
        over.abort();
        const ends = await writing;
        const lost = readFileSync(target.system.logFile, 'utf8').split('"engine lost"').length - 1;
        console.info(`${lost} crashes, and ${ends.length} texts of the neighbor, in ${seconds} s`);
        expect(ends.filter((end) => end !== 'succeeded')).toEqual([]);
        // With a doubling back-off only six crashes would fit in this time, and no request would be served.
        expect(lost).toBeGreaterThan(8);
        expect(ends.length).toBeGreaterThan(1);
      },
    },
  ],
};

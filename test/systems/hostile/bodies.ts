/** Bodies that are large or deeply nested, whatever their content. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'vitest';
import { type AttackGroup, post, type Target } from './attack.ts';

const depth = 400_000;

const largeJson = { type: 'application/json', length: 1_000_000, begin: `{"prompt":"${'a'.repeat(500_000)}` };
const form = 'multipart/form-data; boundary=here';
/** Announces the largest allowed form and sends the first bytes of a file. */
const largeForm = { type: form, length: 64 * 2 ** 20, begin: `${filePart('image')}\x89PNG` };

function filePart(name: string): string {
  return `--here\r\ncontent-disposition: form-data; name="${name}"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n`;
}

/** Sends only the beginning of a large body; returns the API's answer when the API closes the connection. */
async function stall({ url, headers }: Target, { type, length, begin } = largeJson): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  const lines = Object.entries({ ...headers, host: 'localhost', 'content-type': type });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`POST /v1/predict HTTP/1.1\r\n${head}content-length: ${length}\r\n\r\n${begin}`);
  await once(socket, 'close');
  return Buffer.concat(chunks).toString('latin1');
}

async function stallForms(target: Target): Promise<void> {
  const stalled = Promise.all(Array.from({ length: 20 }, () => stall(target, largeForm)));
  let isOver = false;
  const over = stalled.then(() => (isOver = true));
  const upload = new FormData();
  upload.set('image', new Blob([Buffer.from('no image')], { type: 'image/png' }), 'a.png');
  const { otherHeaders: headers } = target;
  const response = await fetch(`${target.url}/v1/predict`, { method: 'POST', headers, body: upload });
  expect([response.status, isOver]).toEqual([400, false]);
  await over;
  expect(new Set((await stalled).map((text) => text.slice(9, 12)))).toEqual(new Set(['408']));
}

export const bodies: AttackGroup = {
  topic: 'bodies',
  attacks: [
    {
      title: 'refuses bodies nested hundreds of thousands deep on every route',
      async run(target) {
        const body = `{"model":"emoji-writer","metadata":${'['.repeat(depth)}${']'.repeat(depth)}}`;
        for (const route of ['/v1/predict', '/v1/chat/completions', '/v1/responses', '/v1/images/generations']) {
          const answer = await post(target, route, body);
          expect([route, answer.status, answer.text.length < 4000]).toEqual([route, 400, true]);
        }
      },
    },
    {
      title: 'parses hundreds of large bodies at once without blocking others, in bounded memory',
      async run(target) {
        const many = { model: 'emoji-writer', stop: Array.from({ length: 19_000 }, () => ({ a: 'b'.repeat(40) })) };
        const long = { model: 'emoji-writer', prompt: 'a red apple '.repeat(80_000) };
        const wrong = { model: 'emoji-writer', prompt: [0, ...Array.from({ length: 190_000 }, () => 'a')] };
        const biases = Object.fromEntries(Array.from({ length: 19_000 }, (_value, index) => [`id ${index}`, '']));
        const biased = { model: 'emoji-writer', prompt: 'a', logit_bias: biases };
        const bodies = [many, long, wrong, biased].map((body) => JSON.stringify(body));
        // An API without memory for a body answers before it has read all of it, which a client may see as a reset.
        const refused = { status: 503, text: '' };
        const answers = [];
        for (let wave = 0; wave < 5; wave++) {
          const sent = Array.from({ length: 60 }, (_value, index) =>
            post(target, '/v1/completions', bodies[index % bodies.length]).catch(() => refused),
          );
          answers.push(...(await Promise.all(sent)));
        }
        expect(answers.map(({ status }) => status)).toContain(400);
        expect(answers.filter(({ status }) => ![400, 429, 503].includes(status))).toEqual([]);
        expect(Math.max(...answers.map(({ text }) => text.length))).toBeLessThan(4000);
      },
    },
    {
      title: 'closes connections whose large bodies stop arriving, and reads bodies of other clients meanwhile',
      async run(target) {
        const stalled = Promise.all(Array.from({ length: 150 }, () => stall(target)));
        const other = { ...target, headers: target.otherHeaders };
        const answer = await post(other, '/v1/completions', { model: 'emoji-writer', prompt: 'a '.repeat(200_000) });
        expect(answer.status).toBe(400);
        const statuses = (await stalled).map((text) => text.slice(9, 12));
        expect(statuses).toContain('408');
        expect(statuses.filter((status) => status !== '408' && status !== '503')).toEqual([]);
      },
    },
    {
      title: 'closes connections whose forms stop arriving, and accepts uploads of other clients meanwhile',
      run: stallForms,
    },
  ],
};

/** Attacks on a server without keys, where all clients share the limits of one owner. */
export const keylessBodies: AttackGroup = {
  topic: 'bodies, without keys',
  hasKeys: false,
  attacks: [
    {
      title: 'closes connections whose forms stop arriving, and accepts uploads of other clients meanwhile',
      run: stallForms,
    },
  ],
};

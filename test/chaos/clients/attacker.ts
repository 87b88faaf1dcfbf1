/** Abusive client: sends hostile bodies to random APIs, one after another, during the whole run. */
import { setTimeout as delay } from 'node:timers/promises';
import { deflateSync } from 'node:zlib';
import type { Dice } from '../dice.ts';
import type { History } from '../history.ts';

const everyMs = 500;
/** Timeout of an attack: a frozen or unavailable API does not answer. */
const answerMs = 30_000;
const inflatedBytes = 30_000_000;

const text = { model: 'emoji-writer', messages: [{ role: 'user', content: 'a cat' }], max_tokens: 4 };

/** Bodies that are invalid or exceed a limit, by name. Each once crashed an API or starved its other clients. */
const attacks: Readonly<Record<string, { path: string; body: () => string }>> = {
  'a pattern that backtracks without end': constrained({
    type: 'string',
    format: 'uuid',
    pattern: '^(?=.)([\\w-]+)+!$',
  }),
  'required names without end': constrained({
    type: 'object',
    required: Array.from({ length: 50_000 }, (_value, index) => `n${index}`),
  }),
  'a grammar of nested repetitions': {
    path: '/v1/chat/completions',
    body: () => JSON.stringify({ ...text, grammar: 'root ::= (((("a"{0,1000}){0,1000}){0,1000}){0,1000}' }),
  },
  'a body nested without end': { path: '/v1/predict', body: () => '['.repeat(500_000) },
  'an array of invalid items': {
    path: '/v1/predict',
    body: () => JSON.stringify({ prompt: Array.from({ length: 150_000 }, () => 'a') }),
  },
  'compressed text in an image': {
    path: '/v1/predict',
    body: () => JSON.stringify({ model: 'emoji-sd', prompt: 'a cat', size: 'none', image: imageWithText() }),
  },
};

function constrained(schema: object): { path: string; body: () => string } {
  const response_format = { type: 'json_schema', json_schema: { name: 'answer', schema } };
  return { path: '/v1/chat/completions', body: () => JSON.stringify({ ...text, response_format }) };
}

/** Builds a PNG without pixels, with a compressed text far larger than the file. */
function imageWithText(): string {
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  const words = Buffer.concat([Buffer.from('a\0\x01\0\0\0'), deflateSync(Buffer.alloc(inflatedBytes))]);
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  const chunks = [chunk('IHDR', header), chunk('iTXt', words), chunk('IEND', Buffer.alloc(0))];
  return `data:image/png;base64,${Buffer.concat([signature, ...chunks]).toString('base64')}`;
}

/** Builds a PNG chunk with a zero checksum: the API must refuse the image before it decodes this chunk. */
function chunk(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.byteLength);
  return Buffer.concat([length, Buffer.from(type, 'latin1'), data, Buffer.alloc(4)]);
}

export interface AttackOptions {
  urls: readonly string[];
  dice: Dice;
  history: History;
}

/** Sends attacks until `over` aborts, and records the status of each answer. */
export async function attack({ urls, dice, history }: AttackOptions, over: AbortSignal): Promise<void> {
  const bodies = new Map(Object.entries(attacks).map(([name, { path, body }]) => [name, { path, body: body() }]));
  while (!over.aborted) {
    const name = dice.pick([...bodies.keys()]);
    const { path, body } = bodies.get(name)!;
    const status = await statusOf(dice.pick(urls) + path, body);
    if (status !== undefined) history.add({ what: 'attack', name, status });
    await delay(everyMs);
  }
}

/** Returns the status, or undefined without a complete answer: the API was killed or is frozen. */
async function statusOf(url: string, body: string): Promise<number | undefined> {
  try {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(answerMs);
    const response = await fetch(url, { method: 'POST', headers, body, signal });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}

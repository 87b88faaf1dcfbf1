// A server that speaks as llama.cpp's, as its README has it. It is told its port, and says when it listens.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { words } from './words.mjs';

const props = { total_slots: 4, default_generation_settings: { n_ctx: 4096 }, chat_template: '' };
const facts = { '/health': { status: 'ok' }, '/props': props };

async function answer(request, response) {
  if (request.method === 'GET') return void response.end(JSON.stringify(facts[request.url] ?? {}));
  const { n_predict: count } = await json(request);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const say = (chunk) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  try {
    for await (const content of words(count, gone.signal)) say({ content, stop: false });
    say({ content: '', stop: true, stop_type: 'limit', tokens_predicted: count, tokens_evaluated: 1 });
    response.end();
  } catch {
    // Nobody listens any more.
  }
}

const server = createServer((request, response) => void answer(request, response));
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send('listening'));

// A server that speaks as llama.cpp's, as its README has it, and as OpenAI's. It is told its port, and says when it listens.
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { words } from './words.mjs';

const facts = {
  '/health': { status: 'ok' },
  '/props': { total_slots: 4, default_generation_settings: { n_ctx: 4096 }, chat_template: '' },
  '/v1/models': { data: [{ id: 'openai' }] },
};
const apis = {
  '/completion': {
    count: ({ n_predict }) => n_predict,
    piece: (content) => ({ content, stop: false }),
    last: (count) => ({ content: '', stop: true, stop_type: 'limit', tokens_predicted: count, tokens_evaluated: 1 }),
  },
  '/v1/completions': {
    count: ({ max_tokens }) => max_tokens,
    piece: (text) => ({ choices: [{ text, finish_reason: null }] }),
    last: (count) => ({ choices: [{ text: '', finish_reason: 'length' }], usage: { completion_tokens: count } }),
  },
};

async function answer(request, response) {
  if (request.method === 'GET') return void response.end(JSON.stringify(facts[request.url] ?? {}));
  const api = apis[request.url];
  const count = api.count(await json(request));
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const say = (chunk) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  try {
    for await (const word of words(count, gone.signal)) say(api.piece(word));
    say(api.last(count));
    response.end('data: [DONE]\n\n');
  } catch {
    // Nobody listens any more.
  }
}

const server = createServer((request, response) => void answer(request, response));
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.send('listening'));

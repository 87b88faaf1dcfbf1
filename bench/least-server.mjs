/**
 * Minimal server with the shape of ours: stores a POSTed request in Redis, and streams its events after one message to
 * another process and back, also stored. No queue, validation or image. `node least-server.mjs <Redis URL>`.
 */
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { Redis } from 'ioredis';

const [, script, url] = process.argv;

if (url === undefined) {
  process.on('message', (message) => process.send(message));
} else {
  const redis = new Redis(url);
  const other = fork(script, { serialization: 'advanced' });
  const waiting = new Map();
  other.on('message', (id) => waiting.get(id)?.());
  const storeRequest = async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const id = String(await redis.incr('least'));
    await redis.set(`least:${id}`, Buffer.concat(chunks), 'EX', 60);
    response.writeHead(202, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ request_id: id }));
  };
  const streamEvents = async (id, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    other.send(id);
    await answered;
    await redis.set(`least:${id}`, 'done', 'EX', 60);
    response.end('event: succeeded\ndata: {}\n\ndata: [DONE]\n\n');
  };
  const server = createServer((request, response) => {
    if (request.method === 'POST') void storeRequest(request, response);
    else void streamEvents(request.url.split('/').at(-2), response);
  });
  server.listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}` }));
  process.on('disconnect', () => process.exit(0));
}

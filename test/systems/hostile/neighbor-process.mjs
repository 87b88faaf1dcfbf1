// A well-behaved client that polls /health at a fixed rate and sends requests. It runs in a separate process so that
// the work of sending an attack does not delay its timer. A message with options starts it; `stop` makes it report.
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const pollEveryMs = 25;
/** Minimum number of polls for a meaningful p99. */
const minPolls = 200;
const requestTimeoutMs = 120_000;

process.once('message', (options) => void watch(options));

async function watch(options) {
  const over = new AbortController();
  process.once('message', () => over.abort());
  const attacked = startPolls(options.url);
  const control = startPolls(options.controlUrl);
  const requests = Promise.all([drawImage, writeJson].map((send) => repeat(() => send(options), over.signal)));
  process.send('started');
  const outcomes = (await requests).flat();
  await Promise.all([attacked.enough, control.enough]);
  process.send({ healthP99Ms: await attacked.stop(), controlP99Ms: await control.stop(), outcomes });
}

/** Calls `send` at least once, sequentially, until the signal aborts; returns the outcomes. */
async function repeat(send, signal) {
  const outcomes = [];
  do outcomes.push(await send().catch(String));
  while (!signal.aborted);
  return outcomes;
}

/** Polls at a fixed rate whether or not earlier polls were answered, so that a blocked API delays all of them. */
function startPolls(url) {
  const agent = new Agent({ keepAlive: true, maxSockets: 32 });
  const times = [];
  let timer;
  const enough = new Promise((resolve) => {
    timer = setInterval(() => {
      times.push(timeHealth(url, agent));
      if (times.length === minPolls) resolve();
    }, pollEveryMs);
  });
  return {
    enough,
    async stop() {
      clearInterval(timer);
      const sorted = (await Promise.all(times)).toSorted((a, b) => a - b);
      agent.destroy();
      return sorted[Math.ceil(sorted.length * 0.99) - 1];
    },
  };
}

/** Returns the latency of one poll, ms; a failed poll counts as an hour. */
function timeHealth(url, agent) {
  const failedMs = 3_600_000;
  const start = performance.now();
  return new Promise((resolve) => {
    const request = get(`${url}/health`, { agent }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode === 200 ? performance.now() - start : failedMs));
    });
    request.once('error', () => resolve(failedMs));
  });
}

async function drawImage({ url, headers }) {
  const body = { model: 'emoji-sd', prompt: 'a red apple', num_inference_steps: 2, output: 'inline' };
  return send(url, '/v1/predict', { ...headers, prefer: 'wait=60' }, body);
}

async function writeJson({ url, headers }) {
  const messages = [{ role: 'user', content: 'a red apple' }];
  const body = { model: 'emoji-writer', messages, max_tokens: 8, response_format: { type: 'json_object' } };
  return send(url, '/v1/chat/completions', headers, body);
}

/** Returns `ok` or the error. Retries on 429 and 503, as the SDKs do: a full queue is not a failure. */
async function send(url, path, headers, body) {
  const signal = AbortSignal.timeout(requestTimeoutMs);
  for (;;) {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal,
    });
    const text = await response.text();
    if (response.status === 503 || response.status === 429) {
      await delay(1000 * Number(response.headers.get('retry-after') ?? 1), undefined, { signal });
      continue;
    }
    return response.status === 200 ? 'ok' : `${body.model}: ${response.status} ${text.slice(0, 300)}`;
  }
}

// A module that writes text derived from the prompt, or shows the fault that the prompt names.
import { setImmediate, setTimeout as delay } from 'node:timers/promises';

const refused = (message) => Object.assign(new Error(message), { code: 'invalid_request' });

/** Generators that replace `write` when the prompt is their name. */
const faults = {
  'throw at once': () => {
    throw new Error('thrown at once');
  },
  'throw later': async function* () {
    yield 'a ';
    throw new Error('thrown later');
  },
  'throw nothing': async function* () {
    yield 'a ';
    throw undefined;
  },
  'throw with a cause': () => {
    throw new Error('no step', { cause: new AggregateError([new Error('layer 7')], 'no device') });
  },
  'throw an object': () => {
    throw { code: 11, detail: 'layer 7' };
  },
  'no iterator': () => 7,
  'a number': async function* () {
    yield 5;
  },
  'a wrong type': async function* () {
    yield { type: 'delta', text: 'x' };
  },
  'tokens that are NaN': async function* () {
    yield { text: 'x', tokens: NaN };
  },
  'half a character': async function* () {
    yield '🦊'.slice(0, 1);
  },
  'what cannot be sent': async function* () {
    yield { text: () => 'x' };
  },
  '100 MB': async function* () {
    yield 'x'.repeat(100_000_000);
  },
  'too long a text': async function* () {
    for (;;) yield 'word '.repeat(1000);
  },
  'a wrong end': async function* () {
    yield 'a ';
    return { finishReason: 'bored' };
  },
  'a flood of nothing': async function* (_request, signal) {
    for (let at = 0; at < 20_000 && !signal.aborted; at++) yield { text: 'x', tokens: 0 };
  },
  'the channel': async function* () {
    yield 'a ';
    process.send({ type: 'pong' });
  },
  silence: async function* () {
    yield 'a ';
    await new Promise(() => {});
  },
  'deaf silence': async function* () {
    yield 'a ';
    for (;;) await delay(1);
  },
  'an infinite loop': async function* () {
    yield 'a ';
    await setImmediate();
    for (;;);
  },
  exit: async function* () {
    yield 'a ';
    process.exit(3);
  },
  'an unhandled rejection': async function* (_request, signal) {
    yield 'a ';
    void Promise.reject(new Error('nobody caught this'));
    await delay(60_000, undefined, { signal });
  },
  'a word with the parent': async function* (_request, signal) {
    yield 'a ';
    // Bypasses the removal of `process.send`.
    process['_send']({ type: 'returned', call: 999, value: new Uint8Array(1) });
    await delay(60_000, undefined, { signal });
  },
  'a word of another shape': async function* (_request, signal) {
    yield 'a ';
    process['_send']({ type: 'events', events: [{ type: 'request-done', requestId: 'b' }] });
    await delay(60_000, undefined, { signal });
  },
};

export function createExecutor() {
  return {
    card: { kind: 'text', maxModelTokens: 4096 },
    slots: 3,
    run(request, signal) {
      const { prompt = '', messages } = request.input.params;
      const said = messages?.at(-1).content ?? prompt;
      if (said === 'nonsense') throw refused('prompt: makes no sense');
      return (faults[said] ?? write)(request, signal, said);
    },
  };
}

async function* write({ input: { maxTokens }, seed, index }, signal, said) {
  for (let at = 0; at < maxTokens; at++) {
    if (signal.aborted) return;
    await setImmediate();
    yield `${said.slice(at % said.length)}é🦊${seed}/${index} `;
  }
  return { finishReason: 'length', promptTokens: said.length };
}

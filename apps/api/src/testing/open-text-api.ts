/** A test's API with a model of text, `writer`, that is the test's to play: with the codec of emoji-writer. */
import { readFileSync } from 'node:fs';
import { encodeTextCodecFiles, type TextCard, type TextOutputFacts, type TokenLogprob } from '@darkroom/kinds';
import { publishModel, type StoreConnection } from '@darkroom/store';
import { toolTemplate } from '@darkroom/testing';
import { type RunningRequest, startWorker } from './fake-worker.ts';
import { openTestApi, type TestApi, type TestApiOptions } from './test-api.ts';

export const writer: TextCard = {
  id: 'writer',
  created: 1_700_000_000,
  ownedBy: 'tests',
  kind: 'text',
  pipeline: 'LlamaForCausalLM',
  mode: 'autoregressive',
  maxModelTokens: 256,
  vocabularySize: 6144,
  codec: 'of-writer',
  hasChatTemplate: true,
  hasTools: false,
  defaults: { maxTokens: 24, temperature: 0, topP: 1, topK: 0 },
  deterministic: { is: true },
};

/** As `writer`, with a template that knows tools. */
export const caller: TextCard = { ...writer, id: 'caller', codec: 'of-caller', hasTools: true };

const directory = new URL('../../../../models/emoji-writer/', import.meta.url);
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, directory), 'utf8'));

/** With a worker that does what the test says. */
export async function openTextApi(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTestApi(options);
  await publishWriter(test.store);
  return test;
}

/** With `caller` beside `writer`. */
export async function openCallerApi(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTextApi(options);
  await publishWriter(test.store, caller, toolTemplate);
  return test;
}

/** Makes it known, with a worker. */
export async function publishWriter(store: StoreConnection, card = writer, chatTemplate?: string): Promise<void> {
  const files = { tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json'), chatTemplate };
  await publishModel(store, card, { name: card.codec, bytes: encodeTextCodecFiles(files) });
  await startWorker(store, { model: card.id });
}

export function ask(
  test: Pick<TestApi, 'api'>,
  path: string,
  body: unknown,
  { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Response> | Response {
  return test.api.request(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}

/** A token as an engine says it, with nothing beside it. */
export function logprobOf(token: string, logprob: number, top: TokenLogprob['top'] = []): TokenLogprob {
  return { token, logprob, bytes: [...Buffer.from(token)], top };
}

/** Writes pieces of a text, each with what is said of its one token. */
export async function write(
  run: RunningRequest,
  pieces: readonly (string | TokenLogprob)[],
  { index = 0, offset = 0 }: { index?: number; offset?: number } = {},
): Promise<void> {
  let at = offset;
  for (const piece of pieces) {
    const text = typeof piece === 'string' ? piece : piece.token;
    const logprobs = typeof piece === 'string' ? {} : { logprobs: `${JSON.stringify(piece)}\n` };
    await run.entry({ type: 'delta', index, offset: at, text, facts: { ids: '5,', ...logprobs } });
    at += text.length;
  }
}

/** Ends a text. */
export async function end(
  run: RunningRequest,
  text: string,
  { index = 0, ...facts }: Partial<TextOutputFacts> & { index?: number } = {},
): Promise<void> {
  await run.output(index, Buffer.from(text), 409_600, {
    finish_reason: 'stop',
    prompt_tokens: 7,
    completion_tokens: 3,
    cached_tokens: 0,
    calls: 3,
    ...facts,
  });
}

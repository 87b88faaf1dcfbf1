/** Test API with a text model, `writer`, that has the codec of emoji-writer; the test plays its worker. */
import { readFileSync } from 'node:fs';
import { encodeTextCodecFiles, type TextCard, type TextOutputFacts, type TokenLogprob } from '@darkroom/kinds';
import { publishModel, type StoreConnection } from '@darkroom/store';
import { textCard, toolTemplate } from '@darkroom/testing';
import { type RunningRequest, startWorker } from './fake-worker.ts';
import { openTestApi, type TestApi, type TestApiOptions } from './test-api.ts';

export const writer = textCard;

/** Like `writer`, with a chat template that supports tools. */
export const caller: TextCard = { ...writer, id: 'caller', codec: 'of-caller', hasTools: true };

const directory = new URL('../../../../models/emoji-writer/', import.meta.url);
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, directory), 'utf8'));

/** Opens an API with `writer` and a worker that the test plays. */
export async function openTextApi(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTestApi(options);
  await publishWriter(test.store);
  return test;
}

/** Opens an API with `writer` and `caller`. */
export async function openCallerApi(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTextApi(options);
  await publishWriter(test.store, caller, toolTemplate);
  return test;
}

/** Publishes the model and registers a worker for it. */
export async function publishWriter(store: StoreConnection, card = writer, chatTemplate?: string): Promise<void> {
  const files = { tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json'), chatTemplate };
  await publishModel(store, card, { name: card.codec, bytes: encodeTextCodecFiles(files) });
  await startWorker(store, { model: card.id });
}

export function postJson(
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

/** Returns a token's log probability as an engine reports it, by default without alternatives. */
export function logprobOf(token: string, logprob: number, top: TokenLogprob['top'] = []): TokenLogprob {
  return { token, logprob, bytes: [...Buffer.from(token)], top };
}

/** Writes deltas of a text, each with the log probability of its one token, if given. */
export async function writeTokens(
  run: RunningRequest,
  deltas: readonly (string | TokenLogprob)[],
  { index = 0, offset = 0 }: { index?: number; offset?: number } = {},
): Promise<void> {
  let at = offset;
  for (const delta of deltas) {
    const text = typeof delta === 'string' ? delta : delta.token;
    const facts: Record<string, string> = { ids: '5,' };
    if (typeof delta !== 'string') facts['logprobs'] = `${JSON.stringify(delta)}\n`;
    await run.entry({ type: 'delta', index, offset: at, text, facts });
    at += text.length;
  }
}

/** Writes the final output of a text. */
export async function end(
  run: RunningRequest,
  text: string,
  { index = 0, ...facts }: Partial<TextOutputFacts> & { index?: number } = {},
): Promise<void> {
  await run.output(index, Buffer.from(text), undefined, {
    finish_reason: 'stop',
    prompt_tokens: 7,
    completion_tokens: 3,
    cached_tokens: 0,
    calls: 3,
    ...facts,
  });
}

/** API half of the embedded text models, with their real tokenizer, for tests that play the worker. */
import { textCard } from '@darkroom/testing';
import { readFileSync } from 'node:fs';
import { encodeTextCodecFiles, type TextCard, type TextMode } from '@darkroom/kinds';
import { publishModel, type StoreConnection } from '@darkroom/store';
import { type RunningRequest, runNext, startWorker } from './fake-worker.ts';
import { openTestApi, type TestApi, type TestApiOptions } from './test-api.ts';

const directory = new URL('../../../../models/emoji-writer/', import.meta.url);
const read = (file: string): unknown => JSON.parse(readFileSync(new URL(file, directory), 'utf8'));

export const textModel = 'writer';

const card: TextCard = { ...textCard, id: textModel, pipeline: 'AutoregressivePipeline' };

/** Opens an API with an image model and a served text model. */
export async function openImageAndTextApi(mode: TextMode, options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTestApi(options);
  await serveTextModel(test.store, { mode });
  return test;
}

/** Publishes a text model and registers a worker that the test plays. */
export async function serveTextModel(
  store: StoreConnection,
  { id = textModel, mode = 'autoregressive' }: { id?: string; mode?: TextMode },
): Promise<void> {
  const block = mode === 'block_diffusion' ? { block: { size: 8, confidenceThreshold: 0.9 } } : {};
  const bytes = encodeTextCodecFiles({ tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json') });
  const served: TextCard = { ...card, id, mode, ...block };
  await publishModel(store, served, { name: card.codec, bytes });
  await startWorker(store, { model: id });
}

/** Leases the request at the head of the text model's queue. */
export function runNextText({ store }: TestApi): Promise<RunningRequest> {
  return runNext(store, textModel);
}

/** Returns the fields that a worker reports at the end of a text. */
export function textFacts(facts: { finish_reason: 'stop' | 'length'; completion_tokens: number; calls: number }) {
  return { prompt_tokens: 3, cached_tokens: 0, ...facts };
}

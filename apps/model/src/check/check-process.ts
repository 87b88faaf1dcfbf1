/**
 * Loads a model, takes one step and ends the picture, in a process of its own: whatever a damaged model does to ONNX
 * Runtime, the one that asked lives on and says so.
 */
import { loadPipeline } from '@darkroom/diffusion';
import { send, serveRequest } from '../serve-request.ts';
import type { CheckMessage, CheckPart, CheckRequest } from './check-message.ts';

async function timed<Result>(what: CheckPart, work: () => Promise<Result>): Promise<Result> {
  const startedAtMs = performance.now();
  const result = await work();
  const ms = performance.now() - startedAtMs;
  const { rss: bytes } = process.memoryUsage();
  const message: CheckMessage = { type: 'done', what, ms, bytes, peakBytes: process.resourceUsage().maxRSS * 1024 };
  await send(message);
  return result;
}

async function check({ model }: CheckRequest): Promise<void> {
  const pipeline = await timed('load', () => loadPipeline(model));
  const loaded: CheckMessage = { type: 'loaded', components: pipeline.components };
  await send(loaded);
  const { sizes, steps, guidance, defaultScheduler } = pipeline.card;
  const input = {
    prompt: 'a red apple on a white background',
    negativePrompt: '',
    ...sizes.default,
    n: 1,
    numInferenceSteps: steps.default,
    guidanceScale: guidance.default,
    seed: 0,
    scheduler: defaultScheduler,
    previewEvery: 0,
  };
  const rows = await timed('encode', async () => {
    const created = await pipeline.createRows({ id: 'check', input });
    await pipeline.settle();
    return created;
  });
  await timed('step', async () => {
    const { failures } = await pipeline.step(rows);
    for (const error of failures.values()) throw error;
  });
  await timed('decode', () => pipeline.finish(rows[0]!));
}

serveRequest(check);

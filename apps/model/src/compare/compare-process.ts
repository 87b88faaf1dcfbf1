/** Makes images with a model in one dtype, in batches as a worker does, then some both in a batch and alone. */
import { sendToParent, itemAt } from '@darkroom/core';
import { type LoadImageModelOptions, loadPipeline, type ImagePipeline, type ImageRow } from '@darkroom/diffusion';
import type { CompareCommand } from '../command/arguments.ts';
import { createImageRow, promptOf, stepOpen } from '../check/image-rows.ts';
import { serveRequest } from '../command/serve-request.ts';

export interface CompareRequest extends Pick<CompareCommand, 'prompts' | 'steps' | 'rows'> {
  readonly model: LoadImageModelOptions;
}

/** Totals of all images. */
export interface ImagesDone {
  readonly ms: number;
  readonly peakBytes: number;
  /** Images whose bytes in a batch differ from those alone, and the number of images compared. */
  readonly changed: number;
  readonly tried: number;
}

/** One message per image, in order, then one with the totals. */
export interface CompareMessage {
  readonly image?: Uint8Array;
  readonly done?: ImagesDone;
}

async function make({ model, prompts, steps, rows: most }: CompareRequest): Promise<void> {
  const pipeline = await loadPipeline(model);
  const startedAtMs = performance.now();
  for (let first = 0; first < prompts; first += most) {
    const rows: ImageRow[] = [];
    for (let seed = first; seed < Math.min(prompts, first + most); seed++)
      rows.push(await createImageRow(pipeline, { prompt: promptOf(seed), seed, steps }));
    await pipeline.settle();
    while (rows.some(isOpen)) await stepOpen(pipeline, rows);
    for (const row of rows) await sendToParent({ image: (await pipeline.finish(row)).data } satisfies CompareMessage);
  }
  const ms = performance.now() - startedAtMs;
  const peakBytes = process.resourceUsage().maxRSS * 1024;
  const changed = await countChanged(pipeline, prompts, most);
  await sendToParent({ done: { ms, peakBytes, changed, tried: most } } satisfies CompareMessage);
}

/**
 * Makes images with different steps and guidance in batches of 1 to `count` rows, and counts those that differ from
 * the same image alone.
 */
async function countChanged(pipeline: ImagePipeline, prompts: number, count: number): Promise<number> {
  const { guidance, steps } = pipeline.card;
  const requests = Array.from({ length: count }, (_, at) => ({
    prompt: promptOf(at % prompts),
    seed: 1000 + at,
    // They join one after the other and end at about the same time.
    steps: Math.max(steps.min, Math.min(steps.max, 2 + count - at)),
    // Every other one without the unconditional half of the guidance, if the model allows that.
    guidance: at % 2 === 0 ? guidance.default : Math.max(guidance.min, Math.min(1, guidance.max)),
  }));
  const alone: Uint8Array[] = [];
  for (const request of requests) {
    const row = await createImageRow(pipeline, request);
    while (isOpen(row)) await stepOpen(pipeline, [row]);
    alone.push((await pipeline.finish(row)).data);
  }
  const rows: ImageRow[] = [];
  for (const request of requests) rows.push(await createImageRow(pipeline, request));
  for (let turn = 0; rows.some(isOpen); turn++) await stepOpen(pipeline, rows.slice(0, turn + 1));
  let changed = 0;
  for (const [at, row] of rows.entries()) {
    const { data } = await pipeline.finish(row);
    if (Buffer.compare(data, itemAt(alone, at)) !== 0) changed++;
  }
  return changed;
}

function isOpen({ isDone }: ImageRow): boolean {
  return !isDone;
}

serveRequest(make);

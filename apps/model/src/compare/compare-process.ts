/** Makes pictures with a model in one dtype: in batches as a worker does, then some in a batch and alone. */
import { loadPipeline, type PicturePipeline, type PictureRow } from '@darkroom/diffusion';
import { send, serveRequest } from '../serve-request.ts';
import type { CompareMessage, CompareRequest } from './compare-message.ts';

async function make({ model, prompts, steps, rows: most }: CompareRequest): Promise<void> {
  const pipeline = await loadPipeline(model);
  const { card } = pipeline;
  const startedAtMs = performance.now();
  for (let first = 0; first < prompts.length; first += most) {
    const rows: PictureRow[] = [];
    for (const [at, prompt] of prompts.slice(first, first + most).entries()) {
      rows.push(await rowOf(pipeline, { prompt, seed: first + at, steps: steps ?? card.steps.default }));
    }
    await pipeline.settle();
    while (rows.some(isOpen)) await stepAll(pipeline, rows.filter(isOpen));
    for (const [at, row] of rows.entries()) {
      const picture: CompareMessage = { type: 'picture', index: first + at, data: (await pipeline.finish(row)).data };
      await send(picture);
    }
  }
  const ms = performance.now() - startedAtMs;
  const peakBytes = process.resourceUsage().maxRSS * 1024;
  const changed = await countChanged(pipeline, prompts, most);
  const done: CompareMessage = { type: 'done', ms, peakBytes, changed, tried: most };
  await send(done);
}

/** Pictures of a batch of every number of rows up to `count`, of different steps and guidances, that are not as alone. */
async function countChanged(pipeline: PicturePipeline, prompts: readonly string[], count: number): Promise<number> {
  const { guidance, steps } = pipeline.card;
  const requests = Array.from({ length: count }, (_, at) => ({
    prompt: prompts[at % prompts.length]!,
    seed: 1000 + at,
    // They join one after the other and end about together.
    steps: Math.max(steps.min, Math.min(steps.max, 2 + count - at)),
    // Every other one without the half that guidance needs, where the model can do without.
    guidance: at % 2 === 0 ? guidance.default : Math.max(guidance.min, Math.min(1, guidance.max)),
  }));
  const alone: Uint8Array[] = [];
  for (const request of requests) {
    const row = await rowOf(pipeline, request);
    while (isOpen(row)) await stepAll(pipeline, [row]);
    alone.push((await pipeline.finish(row)).data);
  }
  const rows: PictureRow[] = [];
  for (const request of requests) rows.push(await rowOf(pipeline, request));
  for (let turn = 0; rows.some(isOpen); turn++) await stepAll(pipeline, rows.slice(0, turn + 1).filter(isOpen));
  let changed = 0;
  for (const [at, row] of rows.entries()) {
    const { data } = await pipeline.finish(row);
    if (Buffer.compare(data, alone[at]!) !== 0) changed++;
  }
  return changed;
}

interface Wanted {
  prompt: string;
  seed: number;
  steps: number;
  guidance?: number;
}

async function rowOf(pipeline: PicturePipeline, wanted: Wanted): Promise<PictureRow> {
  const { card } = pipeline;
  const input = {
    prompt: wanted.prompt,
    negativePrompt: '',
    ...card.sizes.default,
    n: 1,
    numInferenceSteps: wanted.steps,
    guidanceScale: wanted.guidance ?? card.guidance.default,
    seed: wanted.seed,
    scheduler: card.defaultScheduler,
    previewEvery: 0,
  };
  const [row] = await pipeline.createRows({ id: `compare-${wanted.seed}`, input });
  return row!;
}

function isOpen({ isDone }: PictureRow): boolean {
  return !isDone;
}

async function stepAll(pipeline: PicturePipeline, rows: readonly PictureRow[]): Promise<void> {
  const { failures } = await pipeline.step(rows);
  for (const error of failures.values()) throw error;
}

serveRequest(make);

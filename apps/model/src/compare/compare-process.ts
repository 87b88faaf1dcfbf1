/** Makes pictures with a model in one dtype: in batches as a worker does, then some in a batch and alone. */
import { type LoadModelOptions, loadPipeline, type PicturePipeline, type PictureRow } from '@darkroom/diffusion';
import type { CompareCommand } from '../arguments.ts';
import { createPictureRow, promptOf, stepOpen } from '../picture-rows.ts';
import { send, serveRequest } from '../serve-request.ts';

export interface CompareRequest extends Pick<CompareCommand, 'prompts' | 'steps' | 'rows'> {
  readonly model: LoadModelOptions;
}

/** What came of all pictures together. */
export interface PicturesDone {
  readonly ms: number;
  readonly peakBytes: number;
  /** Pictures of a batch that are other bytes than alone, of how many. */
  readonly changed: number;
  readonly tried: number;
}

/** Each picture, in their order, and then the rest. */
export interface CompareMessage {
  readonly picture?: Uint8Array;
  readonly done?: PicturesDone;
}

async function make({ model, prompts, steps, rows: most }: CompareRequest): Promise<void> {
  const pipeline = await loadPipeline(model);
  const startedAtMs = performance.now();
  for (let first = 0; first < prompts; first += most) {
    const rows: PictureRow[] = [];
    for (let seed = first; seed < Math.min(prompts, first + most); seed++)
      rows.push(await createPictureRow(pipeline, { prompt: promptOf(seed), seed, steps }));
    await pipeline.settle();
    while (rows.some(isOpen)) await stepOpen(pipeline, rows);
    for (const row of rows) await send({ picture: (await pipeline.finish(row)).data } satisfies CompareMessage);
  }
  const ms = performance.now() - startedAtMs;
  const peakBytes = process.resourceUsage().maxRSS * 1024;
  const changed = await countChanged(pipeline, prompts, most);
  await send({ done: { ms, peakBytes, changed, tried: most } } satisfies CompareMessage);
}

/** Pictures of a batch of every number of rows up to `count`, of different steps and guidances, that are not as alone. */
async function countChanged(pipeline: PicturePipeline, prompts: number, count: number): Promise<number> {
  const { guidance, steps } = pipeline.card;
  const requests = Array.from({ length: count }, (_, at) => ({
    prompt: promptOf(at % prompts),
    seed: 1000 + at,
    // They join one after the other and end about together.
    steps: Math.max(steps.min, Math.min(steps.max, 2 + count - at)),
    // Every other one without the half that guidance needs, where the model can do without.
    guidance: at % 2 === 0 ? guidance.default : Math.max(guidance.min, Math.min(1, guidance.max)),
  }));
  const alone: Uint8Array[] = [];
  for (const request of requests) {
    const row = await createPictureRow(pipeline, request);
    while (isOpen(row)) await stepOpen(pipeline, [row]);
    alone.push((await pipeline.finish(row)).data);
  }
  const rows: PictureRow[] = [];
  for (const request of requests) rows.push(await createPictureRow(pipeline, request));
  for (let turn = 0; rows.some(isOpen); turn++) await stepOpen(pipeline, rows.slice(0, turn + 1));
  let changed = 0;
  for (const [at, row] of rows.entries()) {
    const { data } = await pipeline.finish(row);
    if (Buffer.compare(data, alone[at]!) !== 0) changed++;
  }
  return changed;
}

function isOpen({ isDone }: PictureRow): boolean {
  return !isDone;
}

serveRequest(make);

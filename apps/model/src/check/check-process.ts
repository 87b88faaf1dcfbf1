/**
 * Loads a model, takes one step and ends the picture, in a process of its own: whatever a damaged model does to ONNX
 * Runtime, the one that asked lives on and says so.
 */
import type { PipelineComponent } from '@darkroom/core';
import { type LoadModelOptions, loadPipeline } from '@darkroom/diffusion';
import { createPictureRow, promptOf, stepOpen } from '../picture-rows.ts';
import { send, serveRequest } from '../serve-request.ts';

/** How long a part of the work took, the memory that the process has after it, and the most that it has had so far. */
export interface CheckMeasurement {
  readonly ms: number;
  readonly bytes: number;
  readonly peakBytes: number;
}

/** The parts of the work, in their order. */
export type CheckPart = 'load' | 'encode' | 'step' | 'decode';

/** What was measured, by the part of the work, and what the model ran on. The process says it bit by bit. */
export interface CheckResult extends Record<CheckPart, CheckMeasurement> {
  components: readonly PipelineComponent[];
}

async function timed<Result>(part: CheckPart, work: () => Promise<Result>): Promise<Result> {
  const startedAtMs = performance.now();
  const result = await work();
  const ms = performance.now() - startedAtMs;
  const { rss: bytes } = process.memoryUsage();
  const measurement: CheckMeasurement = { ms, bytes, peakBytes: process.resourceUsage().maxRSS * 1024 };
  await send({ [part]: measurement });
  return result;
}

async function check({ model }: { model: LoadModelOptions }): Promise<void> {
  const pipeline = await timed('load', () => loadPipeline(model));
  await send({ components: pipeline.components } satisfies Partial<CheckResult>);
  const row = await timed('encode', async () => {
    const created = await createPictureRow(pipeline, { prompt: promptOf(0), seed: 0 });
    await pipeline.settle();
    return created;
  });
  await timed('step', () => stepOpen(pipeline, [row]));
  await timed('decode', () => pipeline.finish(row));
}

serveRequest(check);

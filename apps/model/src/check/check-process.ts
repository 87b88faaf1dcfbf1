/**
 * Loads a model, takes one step and ends the picture, in a process of its own: whatever a damaged model does to ONNX
 * Runtime, the one that asked lives on and says so.
 */
import type { PipelineComponent } from '@darkroom/core';
import { type LoadModelOptions, loadPipeline } from '@darkroom/diffusion';
import { createPictureRow, promptOf, stepOpen } from '../picture-rows.ts';
import { send, serveRequest } from '../serve-request.ts';
import { type CheckMeasurement, measured } from './measured.ts';

/** The parts of the work, in their order. */
export type CheckPart = 'load' | 'encode' | 'step' | 'decode';

/** What was measured, by the part of the work, and what the model ran on. The process says it bit by bit. */
export interface CheckResult extends Record<CheckPart, CheckMeasurement> {
  components: readonly PipelineComponent[];
}

async function check({ model }: { model: LoadModelOptions }): Promise<void> {
  const pipeline = await measured('load', () => loadPipeline(model));
  await send({ components: pipeline.components } satisfies Partial<CheckResult>);
  const row = await measured('encode', async () => {
    const created = await createPictureRow(pipeline, { prompt: promptOf(0), seed: 0 });
    await pipeline.settle();
    return created;
  });
  await measured('step', () => stepOpen(pipeline, [row]));
  await measured('decode', () => pipeline.finish(row));
}

serveRequest(check);

/**
 * Loads an image model, runs one step and decodes, in its own process, so that a crash of ONNX Runtime does not end
 * the command.
 */
import { sendToParent } from '@darkroom/core';
import type { PipelineComponent } from '@darkroom/core';
import { type LoadImageModelOptions, loadPipeline } from '@darkroom/diffusion';
import { createImageRow, promptOf, stepOpen } from './image-rows.ts';
import { serveRequest } from '../command/serve-request.ts';
import { type CheckMeasurement, measured } from './measured.ts';

/** Parts of the check, in order. */
export type CheckPart = 'load' | 'encode' | 'step' | 'decode';

/** Measurements by part, and the devices used. The process sends it in several messages. */
export interface CheckResult extends Record<CheckPart, CheckMeasurement> {
  components: readonly PipelineComponent[];
}

async function check({ model }: { model: LoadImageModelOptions }): Promise<void> {
  const pipeline = await measured('load', () => loadPipeline(model));
  await sendToParent({ components: pipeline.components } satisfies Partial<CheckResult>);
  const row = await measured('encode', async () => {
    const created = await createImageRow(pipeline, { prompt: promptOf(0), seed: 0 });
    await pipeline.settle();
    return created;
  });
  await measured('step', () => stepOpen(pipeline, [row]));
  await measured('decode', () => pipeline.finish(row));
}

serveRequest(check);

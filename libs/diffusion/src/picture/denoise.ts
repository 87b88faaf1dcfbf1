import { DarkroomError, type RowEvent, type StepReport } from '@darkroom/core';
import type { DenoiserBatch, DenoiserRow } from '../graphs/denoiser-batch.ts';
import type { PreviewProjection } from '../model/model-directory.ts';
import { guide } from './guide.ts';
import { projectLatents } from './latents-to-rgb.ts';
import type { PictureRow } from './picture-row.ts';
import { putBack } from './start-latents.ts';

/**
 * Takes one step of every row, with as few calls of the model as it allows. `projection`: of latents to what they will look
 * like; without it there are no previews.
 *
 * @throws DarkroomError if a model call fails; no row has moved then.
 */
export async function denoise(
  rows: readonly PictureRow[],
  { batch, projection }: { batch: DenoiserBatch; projection: PreviewProjection | undefined },
): Promise<StepReport<PictureRow>> {
  const halves = rows.map(batchRowsOf);
  // All model calls first: if one of them fails, no row has moved.
  const outputs = await batch.run(halves.flat(), rows[0]!.latentDims);
  const events = new Map<PictureRow, RowEvent[]>();
  const failures = new Map<PictureRow, DarkroomError>();
  let offset = 0;
  for (const [position, row] of rows.entries()) {
    const [first, second] = outputs.slice(offset, offset + halves[position]!.length);
    offset += halves[position]!.length;
    const error = stepRow(row, second === undefined ? first! : guide(first!, second, row.request));
    if (error === undefined) events.set(row, [progressOf(row, projection)]);
    else failures.set(row, error);
  }
  return { modelRows: outputs.length, events, failures };
}

/** The rows that a picture takes up in the denoiser's batch: without and with its prompt, or only with. */
function batchRowsOf(row: PictureRow): DenoiserRow[] {
  const timestep = row.scheduler.timesteps[row.scheduler.stepIndex]!;
  const { latents, alongside, loras } = row;
  const writeSample: DenoiserRow['writeSample'] = (target, offset) => {
    row.scheduler.scaleModelInput(latents, target, offset);
    if (alongside !== undefined) target.set(alongside, offset + latents.length);
  };
  const conditional = { writeSample, timestep, conditioning: row.conditional, loras };
  if (row.unconditional === undefined) return [conditional];
  return [{ ...conditional, conditioning: row.unconditional }, conditional];
}

function stepRow(row: PictureRow, modelOutput: Float32Array): DarkroomError | undefined {
  const { scheduler, generator, latents: sample, predictedOriginal } = row;
  try {
    const fillNoise = (target: Float32Array): void => generator.fillNormal(target);
    scheduler.step({ modelOutput, sample, predictedOriginal, fillNoise });
    if (row.kept !== undefined) putBack(row.kept, row);
    if (sample.every((value) => Number.isFinite(value))) return undefined;
    return rowError('the picture could not be made: the model gave values that are not numbers');
  } catch (error) {
    return rowError('the picture could not be made: the scheduler failed', error);
  }
}

/** With a preview at the request's cadence, never after the last step. */
function progressOf(row: PictureRow, projection: PreviewProjection | undefined): RowEvent {
  const { step: done, totalSteps: total, isDone } = row;
  const { previewEvery } = row.request;
  const isPreviewDue = projection !== undefined && previewEvery > 0 && done % previewEvery === 0 && !isDone;
  if (!isPreviewDue) return { type: 'progress', done, total };
  const [, height, width] = row.latentDims;
  const preview = { data: projectLatents(row.predictedOriginal, projection), facts: { width, height } };
  return { type: 'progress', done, total, preview };
}

function rowError(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('engine_failed', 'diffusion.step', message, cause);
}

import { DarkroomError } from '@darkroom/core';
import type { StepReport } from '../pipeline.ts';
import { guide } from './guide.ts';
import type { PictureRow } from './picture-row.ts';
import type { UnetBatch, UnetBatchRow } from './unet-batch.ts';

/**
 * Takes one step of every row: one call of the model, or one for each timestep among the rows where it takes only one.
 *
 * @throws DarkroomError if a model call fails; no row has moved then.
 */
export async function denoise(rows: readonly PictureRow[], unetBatch: UnetBatch): Promise<StepReport<PictureRow>> {
  const calls = unetBatch.hasTimestepPerRow ? [rows] : groupByTimestep(rows);
  // All model calls first: if one of them fails, no row has moved.
  const outputs: Float32Array[] = [];
  for (const call of calls) {
    outputs.push((await unetBatch.run(call.flatMap(batchRowsOf), call[0]!.latentDims)).data);
  }

  const failures: { row: PictureRow; error: DarkroomError }[] = [];
  let modelRows = 0;
  for (const [position, call] of calls.entries()) {
    let offset = 0;
    for (const row of call) {
      const halves = row.unconditional === undefined ? 1 : 2;
      const length = halves * row.latents.length;
      const output = outputs[position]!.subarray(offset, offset + length);
      offset += length;
      modelRows += halves;
      const error = stepRow(row, halves === 1 ? output : guide(output, row.request));
      if (error !== undefined) failures.push({ row, error });
    }
  }
  return { modelRows, failures };
}

function timestepOf({ scheduler }: PictureRow): number {
  return scheduler.timesteps[scheduler.stepIndex]!;
}

function groupByTimestep(rows: readonly PictureRow[]): PictureRow[][] {
  const groups = new Map<number, PictureRow[]>();
  for (const row of rows) {
    const group = groups.get(timestepOf(row));
    if (group === undefined) groups.set(timestepOf(row), [row]);
    else group.push(row);
  }
  return [...groups.values()];
}

/** The rows that a picture takes up in the UNet's batch: without and with its prompt, or only with. */
function batchRowsOf(row: PictureRow): UnetBatchRow[] {
  const timestep = timestepOf(row);
  const writeSample: UnetBatchRow['writeSample'] = (target, offset) =>
    row.scheduler.scaleModelInput(row.latents, target, offset);
  const conditional = { writeSample, timestep, conditioning: row.conditional };
  if (row.unconditional === undefined) return [conditional];
  return [{ writeSample, timestep, conditioning: row.unconditional }, conditional];
}

function stepRow(row: PictureRow, modelOutput: Float32Array): DarkroomError | undefined {
  const { scheduler, generator, latents: sample, predictedOriginal } = row;
  try {
    const fillNoise = (target: Float32Array): void => generator.fillNormal(target);
    scheduler.step({ modelOutput, sample, predictedOriginal, fillNoise });
    if (sample.every((value) => Number.isFinite(value))) return undefined;
    return rowError('the picture could not be made: the model gave values that are not numbers');
  } catch (error) {
    return rowError('the picture could not be made: the scheduler failed', error);
  }
}

function rowError(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError({ code: 'engine_failed', op: 'diffusion.step', message, cause });
}

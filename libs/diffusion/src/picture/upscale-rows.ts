import { DarkroomError, type RowEvent, type RowOutput, type StepReport } from '@darkroom/core';
import { outputSize, type Upscale } from '@darkroom/kinds';
import type { Upscaler } from '../upscale/upscaler.ts';
import type { PictureRow } from './picture-row.ts';

interface UpscaleRowsOptions {
  upscalers: ReadonlyMap<Upscale, Upscaler>;
  /** Decodes a picture. */
  develop: (row: PictureRow) => Promise<RowOutput>;
}

/** Enlarges one piece of each row. What goes wrong with one concerns that one alone. */
export async function upscaleRows(
  rows: readonly PictureRow[],
  options: UpscaleRowsOptions,
): Promise<StepReport<PictureRow>> {
  const events = new Map<PictureRow, RowEvent[]>();
  const failures = new Map<PictureRow, DarkroomError>();
  for (const row of rows) {
    try {
      await upscaleRow(row, options);
      events.set(row, [{ type: 'progress', done: row.step, total: row.totalSteps }]);
    } catch (error) {
      failures.set(row, asOurs(error));
    }
  }
  return { modelRows: rows.length, events, failures };
}

async function upscaleRow(row: PictureRow, { upscalers, develop }: UpscaleRowsOptions): Promise<void> {
  const upscaling = row.upscaling!;
  const upscaler = upscalers.get(upscaling.upscale)!;
  if (upscaling.picture === undefined) {
    upscaling.picture = await develop(row);
    const { width, height } = outputSize(row.request);
    upscaling.target = new Uint8Array(width * height * 3);
  }
  const { data, facts } = upscaling.picture;
  // A black one is as black when it is larger.
  if (facts['nsfw'] !== true) {
    const { width, height } = row.request;
    await upscaler.enlarge({ picture: { data, width, height }, target: upscaling.target }, upscaling.done);
  }
  upscaling.done += 1;
}

/** What a row has become of which all pieces are done. */
export function upscaledOutput({ request, upscaling }: PictureRow): RowOutput {
  const { picture, target } = upscaling!;
  return { data: target, facts: { ...picture!.facts, ...outputSize(request) } };
}

function asOurs(error: unknown): DarkroomError {
  if (DarkroomError.isInstance(error)) return error;
  return new DarkroomError('engine_failed', 'diffusion.upscale', 'the picture could not be enlarged', error);
}

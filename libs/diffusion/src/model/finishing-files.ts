/** Finds a model's optional graphs that run on decoded images: a safety checker and upscalers. */
import { join } from 'node:path';
import type { Device } from '@darkroom/core';
import { type ImageCard, type Upscale, upscales } from '@darkroom/kinds';
import { z } from 'zod';
import { type ClipImageSettings, readClipImageSettings } from '../safety/clip-image.ts';
import { findOptionalFile } from './find-model-file.ts';
import { misfitError, readModelConfig, unlessMissing } from '@darkroom/runtime/model-file';

/**
 * `auto`: unsafe images are replaced by black ones. `refuse`: unsafe images fail. `off`: images are not checked.
 */
export type SafetyCheckerChoice = 'auto' | 'off' | 'refuse';

/** Absolute paths. */
export interface FinishingFiles {
  readonly safetyChecker?: string;
  /** In the order of the card's `upscales`. */
  readonly upscalers?: readonly string[];
}

interface Finishing {
  readonly files: FinishingFiles;
  readonly card: Pick<ImageCard, 'safetyChecker' | 'upscales'>;
  readonly clipImage: ClipImageSettings | undefined;
}

export const safetyCheckerFolder = 'safety_checker';

/** The folder of an upscaler, as diffusers names folders. */
export function upscalerFolder(upscale: Upscale): string {
  return `upscaler_x${upscale}`;
}

/**
 * Finds the graphs by their folders. A `safety_checker` folder without an ONNX graph holds PyTorch files and is
 * ignored.
 *
 * @throws DarkroomError `model_unsupported` naming a configuration that is missing or does not fit.
 */
export async function readFinishing(
  directory: string,
  { choice, device }: { choice: SafetyCheckerChoice; device?: Device },
): Promise<Finishing> {
  const checker = choice === 'off' ? undefined : await findOptionalFile(directory, safetyCheckerFolder, device);
  const found = await Promise.all(upscales.map((upscale) => findUpscaler(directory, upscale, device)));
  const upscalers = found.filter((upscaler) => upscaler !== undefined);
  return {
    files: {
      ...(checker !== undefined && { safetyChecker: join(directory, checker) }),
      ...(upscalers.length > 0 && { upscalers: upscalers.map(({ path }) => path) }),
    },
    card: {
      ...(upscalers.length > 0 && { upscales: upscalers.map(({ upscale }) => upscale) }),
      ...(checker !== undefined && { safetyChecker: choice === 'refuse' ? 'refuse' : 'black' }),
    },
    clipImage: checker === undefined ? undefined : await readClipImageSettings(directory),
  };
}

/** Only one of the two layouts has a configuration: that of transformers. */
const upscalerSchema = z.looseObject({ upscale: z.number().int().optional() });

async function findUpscaler(
  directory: string,
  upscale: Upscale,
  device: Device | undefined,
): Promise<{ upscale: Upscale; path: string } | undefined> {
  const folder = upscalerFolder(upscale);
  const graph = await findOptionalFile(directory, folder, device);
  if (graph === undefined) return undefined;
  const file = `${folder}/config.json`;
  const config = await unlessMissing(readModelConfig(directory, file, upscalerSchema));
  const scale = config?.upscale ?? upscale;
  if (scale !== upscale) throw misfitError(file, 'upscale', scale, `${upscale}, as its folder says`);
  return { upscale, path: join(directory, graph) };
}

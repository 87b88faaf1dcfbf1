/** What a model's directory has for pictures that are decoded: a safety checker, and upscalers. A model may come without. */
import { join } from 'node:path';
import { type PictureCard, type Upscale, upscales } from '@darkroom/kinds';
import { z } from 'zod';
import { type ClipImageSettings, readClipImageSettings } from '../safety/clip-image.ts';
import { findOptionalFile } from './find-model-file.ts';
import { misfitError, readModelConfig, unlessMissing } from './model-file.ts';

/** `auto`: pictures that it finds fault with are made black. `refuse`: they cannot be had. `off`: it is not looked for. */
export type SafetyCheckerChoice = 'auto' | 'off' | 'refuse';

/** Absolute paths. */
export interface FinishingFiles {
  readonly safetyChecker?: string;
  /** In the order of the card's `upscales`. */
  readonly upscalers?: readonly string[];
}

interface Finishing {
  readonly files: FinishingFiles;
  readonly card: Pick<PictureCard, 'safetyChecker' | 'upscales'>;
  readonly clipImage: ClipImageSettings | undefined;
}

export const safetyCheckerFolder = 'safety_checker';

/** The folder of an upscaler, as diffusers names folders. */
export function upscalerFolder(upscale: Upscale): string {
  return `upscaler_x${upscale}`;
}

/**
 * Finds them by their folders: a `safety_checker` without an ONNX graph is PyTorch's, and none.
 *
 * @throws DarkroomError `model_unsupported` naming a configuration that is missing or does not fit.
 */
export async function readFinishing(directory: string, choice: SafetyCheckerChoice): Promise<Finishing> {
  const checker = choice === 'off' ? undefined : await findOptionalFile(directory, safetyCheckerFolder);
  const found = await Promise.all(upscales.map((upscale) => findUpscaler(directory, upscale)));
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

/** Of the two layouts that there are, only that of transformers has a configuration. */
const upscalerSchema = z.looseObject({ upscale: z.number().int().optional() });

async function findUpscaler(
  directory: string,
  upscale: Upscale,
): Promise<{ upscale: Upscale; path: string } | undefined> {
  const folder = upscalerFolder(upscale);
  const graph = await findOptionalFile(directory, folder);
  if (graph === undefined) return undefined;
  const file = `${folder}/config.json`;
  const config = await unlessMissing(readModelConfig(directory, file, upscalerSchema));
  const scale = config?.upscale ?? upscale;
  if (scale !== upscale) throw misfitError(file, 'upscale', scale, `${upscale}, as its folder says`);
  return { upscale, path: join(directory, graph) };
}

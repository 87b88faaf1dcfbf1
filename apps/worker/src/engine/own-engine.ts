import { basename, isAbsolute } from 'node:path';
import { type Config, memoryReturningEnvironment } from '@darkroom/config';
import { ModuleExecutor } from '@darkroom/executor';
import { asTheyAre, ofPictures, withRecipes } from '../request/output-encoder.ts';
import type { OutputEncoder } from '../request/output-encoder.ts';
import type { WorkerEngine } from './worker-engine.ts';

/** A module of somebody's own in a process of its own. What it is, and how much it makes at once, is known when it has started. */
export function ownEngine(config: Config<'worker'>): WorkerEngine {
  const { modelId: model, executor: module, engineTimeoutS, hasLowMemory } = config;
  return {
    card: { id: model },
    capacity: 1,
    encoder: withRecipes(whatIsRaw(ofPictures(config.pngLevel)), model),
    // Clients see it: not where it lies.
    device: isAbsolute(module) ? basename(module) : module,
    createExecutor: (onEvents) =>
      new ModuleExecutor({
        module,
        model,
        patienceMs: engineTimeoutS * 1000,
        environment: hasLowMemory ? memoryReturningEnvironment() : undefined,
        onEvents,
      }),
  };
}

/** Only pixels have no type. */
function whatIsRaw(pictures: OutputEncoder): OutputEncoder {
  return {
    encodeOutput: (input, output) =>
      (output.contentType === undefined ? pictures : asTheyAre).encodeOutput(input, output),
    encodePreview: (output) => asTheyAre.encodePreview(output),
  };
}

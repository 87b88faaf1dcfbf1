import { access } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { RequestEnvelope, RowOutput } from '@darkroom/core';
import {
  describeModel,
  filesOfLoras,
  type GraphDescription,
  type ModelDirectory,
  readModelDirectory,
} from '@darkroom/diffusion/model-files';
import { encodeImage, encodePreview, withMetadata } from '@darkroom/imaging';
import { type ImageInput, imageKind, recipeOf } from '@darkroom/kinds';
import type { DescribedModel, EncodedOutput, EngineKind, LoadModelOptions, ModelNote } from '../../engine-kind.ts';

/** Images: a slot is a row. */
export const imageEngine: EngineKind = {
  id: imageKind.id,
  // Measured on Linux with tiny models. Convolution weights are INT8 in the file and fp32 in memory.
  memory: { processBytes: 160e6, weightFactor: 2 },
  detect: (directory) =>
    access(join(directory, 'model_index.json')).then(
      () => true,
      () => false,
    ),
  describe: describeImageModel,
  capacity: (_model, { batchMaxSize }) => ({ slots: batchMaxSize }),
  load: async (options) => (await import('@darkroom/diffusion')).loadPipeline(options),
  encode: encodeWithMetadata,
  encodePreview: async (preview) => fileOf(preview) ?? encodePreview(preview),
};

async function describeImageModel(options: LoadModelOptions): Promise<DescribedModel> {
  const directory = await readModelDirectory(options.directory, options);
  const { graphs, hasTimestepPerRow } = describeModel(directory);
  const { card, path, loras } = directory;
  const notes = graphs.map(({ part, files, dtype, bytes }): ModelNote => {
    return { level: 'info', message: 'model part found', fields: { part, file: files[0], dtype, bytes } };
  });
  if (options.safetyChecker === 'refuse' && card.safetyChecker === undefined) {
    const message = 'SAFETY_CHECKER is refuse, and the model has no safety checker: outputs are not checked';
    notes.push({ level: 'warn', message, fields: {} });
  }
  if (!hasTimestepPerRow) {
    const cost = 'a step costs one model call for each timestep among its images, not one for all';
    const message = 'the denoiser was exported with one timestep for all rows';
    notes.push({ level: 'warn', message, fields: { cost } });
  }
  return {
    card,
    files: [...graphs.flatMap(({ files }) => files), ...filesOfLoras(path, loras)],
    weightBytes: graphs.reduce((sum, { bytes }) => sum + bytes, loraWeightBytes(directory, graphs)),
    notes,
  };
}

/** Returns the size of the adapter weights, which graphs with LoRA inputs load in addition to their own. */
function loraWeightBytes({ card, loras }: ModelDirectory, graphs: readonly GraphDescription[]): number {
  if (card.loras === undefined) return 0;
  const parts = [loras.denoiser, ...loras.encoders].flatMap((graph) => (graph ? basename(dirname(graph.path)) : []));
  return graphs.reduce((sum, { part, bytes }) => sum + (parts.includes(part) ? bytes : 0), 0);
}

/** Encodes raw pixels, and adds generation metadata if the input requests it. */
async function encodeWithMetadata(
  output: RowOutput,
  request: Pick<RequestEnvelope, 'model' | 'input'>,
): Promise<EncodedOutput> {
  // The API validated the input with this type, and the pipeline has checked it.
  const input = request.input as ImageInput;
  const encoded = fileOf(output) ?? (await encodeImage(output, input));
  if (input.metadata !== true) return encoded;
  return withMetadata(encoded, recipeOf(request.model, input, Number(output.facts['seed'] ?? input.seed)));
}

/** Returns the output if it is a file already. */
function fileOf({ data, contentType }: RowOutput): EncodedOutput | undefined {
  return contentType === undefined ? undefined : { data, contentType };
}

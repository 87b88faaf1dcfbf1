import { basename, dirname } from 'node:path';
import {
  describeGraphFile,
  describeModel,
  type ModelDirectory,
  readModelDirectory,
} from '@darkroom/diffusion/model-files';
import { modelDirectoryProblem } from '@darkroom/config';
import { DarkroomError, type ModelCard } from '@darkroom/core';
import type { TextCodec } from '@darkroom/kinds';
import type { LoadModelOptions } from '@darkroom/executor';
import { isTextModel, readTextModelDirectory } from '@darkroom/language/model-files';
import type { Logger } from '@darkroom/service';
import type { ModelAsset } from '@darkroom/store';

/** A model's metadata as read from its files, before an engine has loaded it. */
export interface WorkerModel {
  card: ModelCard;
  /** File that API replicas need besides the card. */
  asset?: ModelAsset;
  /** Total of the files that are loaded. */
  weightBytes: number;
  /** KV cache per token, bytes; text models only. */
  tokenBytes?: number;
}

/** @throws DarkroomError `model_unsupported` if the path is not a model directory, with what it is and what to do. */
export function checkModelDirectory(directory: string): void {
  const problem = modelDirectoryProblem(directory);
  if (problem !== undefined) throw new DarkroomError('model_unsupported', 'worker.read-model', problem);
}

/**
 * Reads the model's directory and the headers of its graphs. Logs the files of its parts and warns about slow exports.
 *
 * @throws DarkroomError `model_unsupported` from the reader of the model's kind.
 */
export async function readModel(options: LoadModelOptions, log: Logger): Promise<WorkerModel> {
  if (await isTextModel(options.directory)) return readTextModel(options, log);
  const directory = await readModelDirectory(options.directory, options);
  const { graphs, hasTimestepPerRow } = describeModel(directory);
  for (const { part, files, dtype, bytes } of graphs) {
    log.info({ model: directory.card.id, part, file: files[0], dtype, bytes }, 'model part found');
  }
  if (options.safetyChecker === 'refuse' && directory.card.safetyChecker === undefined)
    log.warn(
      { model: directory.card.id },
      'SAFETY_CHECKER is refuse, and the model has no safety checker: outputs are not checked',
    );
  if (!hasTimestepPerRow) {
    const cost = 'a step costs one model call for each timestep among its images, not one for all';
    log.warn({ model: directory.card.id, cost }, 'the denoiser was exported with one timestep for all rows');
  }
  const weightBytes = graphs.reduce((sum, { bytes }) => sum + bytes, 0);
  return { card: directory.card, weightBytes: weightBytes + loraWeightBytes(directory, graphs) };
}

/** Returns the size of the adapter weights, which graphs with LoRA inputs load in addition to their own. */
function loraWeightBytes({ card, loras }: ModelDirectory, graphs: readonly { part: string; bytes: number }[]): number {
  if (card.loras === undefined) return 0;
  const parts = [loras.denoiser, ...loras.encoders].flatMap((graph) => (graph ? basename(dirname(graph.path)) : []));
  return graphs.reduce((sum, { part, bytes }) => sum + (parts.includes(part) ? bytes : 0), 0);
}

async function readTextModel(options: LoadModelOptions, log: Logger): Promise<WorkerModel> {
  const { card, codec, codecDocument: bytes, graph, config } = await readTextModelDirectory(options.directory, options);
  const { layers, keyHeads, headWidth } = config;
  log.info({ model: card.id, mode: card.mode, file: graph }, 'text model found');
  const reason = card.hasChatTemplate ? findTemplateError(codec) : undefined;
  if (reason !== undefined)
    log.warn({ model: card.id, reason }, 'the chat template rejects every message: chat requests will fail');
  const { bytes: weightBytes } = describeGraphFile(options.directory, graph);
  // Keys and values, fp32: 2 × 4 bytes.
  return { card, asset: { name: card.codec, bytes }, weightBytes, tokenBytes: 2 * layers * keyHeads * headWidth * 4 };
}

/** Returns why the template rejects the simplest chat, or undefined if it does not. */
function findTemplateError(codec: TextCodec): string | undefined {
  try {
    codec.renderChat([{ role: 'user', content: 'Hi' }]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

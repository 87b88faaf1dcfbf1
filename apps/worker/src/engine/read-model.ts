import { describeGraphFile, describeModel, readModelDirectory } from '@darkroom/diffusion/model-files';
import type { ModelCard } from '@darkroom/core';
import type { TextCodec } from '@darkroom/kinds';
import type { LoadModelOptions } from '@darkroom/executor';
import { isTextModel, readTextModelDirectory } from '@darkroom/language/model-files';
import type { Logger } from '@darkroom/service';
import type { ModelAsset } from '@darkroom/store';

/** What a worker knows of its model before an engine has loaded it. */
export interface WorkerModel {
  card: ModelCard;
  /** What readers of the card need beside it. */
  asset?: ModelAsset;
  /** Of the files that are loaded. */
  weightBytes: number;
  /** Of text: bytes of cache that each token takes. */
  tokenBytes?: number;
}

/**
 * Reads the model's directory and the heads of its graphs, and logs which files are its parts and what of it costs time.
 *
 * @throws DarkroomError `model_unsupported` as the readers of both kinds do.
 */
export async function readModel(options: LoadModelOptions, log: Logger): Promise<WorkerModel> {
  if (await isTextModel(options.directory)) return readTextModel(options, log);
  const directory = await readModelDirectory(options.directory, options);
  const { graphs, hasTimestepPerRow } = describeModel(directory);
  for (const { part, files, dtype, bytes } of graphs) {
    log.info({ model: directory.card.id, part, file: files[0], dtype, bytes }, 'a part of the model');
  }
  if (options.safetyChecker === 'refuse' && directory.card.safetyChecker === undefined)
    log.warn(
      { model: directory.card.id },
      'SAFETY_CHECKER is refuse, and the model has no safety checker: nothing is refused',
    );
  if (!hasTimestepPerRow) {
    const cost = 'a step costs one model call for each timestep among its pictures, not one for all';
    log.warn({ model: directory.card.id, cost }, 'the denoiser was exported with one timestep for all rows');
  }
  // The graph that takes adapters has weights of its own once it is loaded.
  const denoiser = graphs.find(({ part }) => part === directory.folders.denoiser)!;
  const weightBytes = graphs.reduce((sum, { bytes }) => sum + bytes, 0);
  return { card: directory.card, weightBytes: weightBytes + (directory.card.loras === undefined ? 0 : denoiser.bytes) };
}

async function readTextModel(options: LoadModelOptions, log: Logger): Promise<WorkerModel> {
  const { card, codec, codecDocument: bytes, graph, config } = await readTextModelDirectory(options.directory, options);
  const { layers, keyHeads, headWidth } = config;
  log.info({ model: card.id, mode: card.mode, file: graph }, 'a model of text');
  const reason = card.hasChatTemplate ? reasonOfRefusal(codec) : undefined;
  if (reason !== undefined)
    log.warn({ model: card.id, reason }, 'the chat template takes no message, so chats are refused');
  const { bytes: weightBytes } = describeGraphFile(options.directory, graph);
  // Keys and values, in fp32.
  return { card, asset: { name: card.codec, bytes }, weightBytes, tokenBytes: 2 * layers * keyHeads * headWidth * 4 };
}

/** Why not even the simplest chat can be had. */
function reasonOfRefusal(codec: TextCodec): string | undefined {
  try {
    codec.renderChat([{ role: 'user', content: 'Hi' }]);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

import { stat } from 'node:fs/promises';
import { describeModel, readModelDirectory } from '@darkroom/diffusion/model-files';
import type { GraphDescription, ModelDescription, ModelDirectory } from '@darkroom/diffusion/model-files';
import { isTextModel } from '@darkroom/language/model-files';
import { CommandError } from '../command/command-error.ts';
import { countText, sizeText } from '../command/number-text.ts';
import { table } from '../command/table.ts';
import type { CheckModelOptions } from './check-options.ts';
import { checkTextModel } from './check-text-model.ts';
import { componentTable, measurementTable } from './check-tables.ts';
import { runCheck } from './run-check.ts';

/**
 * Describes a model, loads it, and runs one step or writes a sentence.
 *
 * @throws DarkroomError or CommandError naming the file and what is wrong.
 */
export async function checkModel(options: CheckModelOptions): Promise<void> {
  const { directory } = options.model;
  const found = await stat(directory).catch(() => undefined);
  if (found?.isDirectory() !== true) throw new CommandError(`there is no directory ${directory}`);
  return (await isTextModel(directory)) ? checkTextModel(options) : checkImageModel(options);
}

async function checkImageModel({ model, signal, write }: CheckModelOptions): Promise<void> {
  const files = await readModelDirectory(model.directory, model);
  const description = describeModel(files);
  write(`${table(factsOf(files, description))}\n\n${graphTable(description.graphs)}\n\n`);
  const { load, encode, step, decode, components } = await runCheck({ model }, signal);
  const measurements = measurementTable([
    ['loading', load],
    ['encoding prompts', encode],
    [`one step, ${sizeOf(files.card.sizes.default)}`, step],
    ['decoding', decode],
  ]);
  write(`${measurements}\n\n${componentTable(components)}\n\nok\n`);
}

function factsOf(
  { card, pipelineClass, preview, loras }: ModelDirectory,
  { hasTimestepPerRow }: ModelDescription,
): string[][] {
  const { sizes, steps, guidance } = card;
  return [
    ['id', card.id],
    ['family', pipelineClass],
    ['sizes', `multiples of ${sizes.multiple} from ${sizes.min} to ${sizes.max}, ${sizeOf(sizes.default)} by default`],
    ['steps', `${steps.min} to ${steps.max}, ${steps.default} by default`],
    ['guidance', `${guidance.min} to ${guidance.max}, ${guidance.default} by default`],
    ['schedulers', `${card.schedulers.join(', ')}; ${card.defaultScheduler} by default`],
    ['prompt', `${card.maxPromptTokens} tokens`],
    ...lorasFacts(loras),
    [
      'previews',
      preview === undefined ? 'none (darkroom.json has no preview; tools/export/previews.py fits one)' : 'yes',
    ],
    [
      'timesteps',
      hasTimestepPerRow
        ? 'one per row: images at different steps share a call of the model'
        : 'one for all rows: images at different steps cost a call of the model each, so batching saves little',
    ],
  ];
}

/** Returns rows about LoRAs; none for a model that supports none and has none. */
function lorasFacts({ files, refused }: ModelDirectory['loras']): string[][] {
  if (files.size === 0 && refused.length === 0) return [];
  const there = [...files.values()].map(({ id, rank, leftOut }) => {
    const without = leftOut.length === 0 ? '' : `, without its changes of ${leftOut.join(' and ')}`;
    return `${id} (rank ${rank}${without})`;
  });
  const others = refused.map(({ file, reason }) => `left out: ${file}: ${reason}`);
  return [['loras', [there.join(', ') || 'none', ...others].join('; ')]];
}

function graphTable(graphs: readonly GraphDescription[]): string {
  const rows = graphs.map(({ part, files, dtype, parameters, bytes }) => [
    part,
    files.map((file) => file.slice(part.length + 1)).join(', '),
    dtype,
    countText(parameters),
    sizeText(bytes),
  ]);
  const sumOf = (key: 'parameters' | 'bytes'): number => graphs.reduce((sum, graph) => sum + graph[key], 0);
  const all = ['all', '', '', countText(sumOf('parameters')), sizeText(sumOf('bytes'))];
  return table([['part', 'file', 'dtype', 'parameters', 'size'], ...rows, all]);
}

function sizeOf({ width, height }: { width: number; height: number }): string {
  return `${width}x${height}`;
}

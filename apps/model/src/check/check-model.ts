import { stat } from 'node:fs/promises';
import type { PipelineComponent } from '@darkroom/core';
import type { LoadModelOptions } from '@darkroom/diffusion';
import { describeModel, readModelDirectory } from '@darkroom/diffusion/model-files';
import type { GraphDescription, ModelDescription, ModelDirectory } from '@darkroom/diffusion/model-files';
import { CommandError } from '../command-error.ts';
import { countText, sizeText } from '../number-text.ts';
import { table } from '../table.ts';
import type { CheckMeasurement } from './check-process.ts';
import { runCheck } from './run-check.ts';

export interface CheckModelOptions {
  /** As a worker with the same settings has it. */
  model: LoadModelOptions;
  signal: AbortSignal;
  write: (text: string) => void;
}

/** Says what a model is, loads it and takes one step. @throws DarkroomError or CommandError naming the file and what is wrong. */
export async function checkModel({ model, signal, write }: CheckModelOptions): Promise<void> {
  const { directory } = model;
  const found = await stat(directory).catch(() => undefined);
  if (found?.isDirectory() !== true) throw new CommandError(`there is no directory ${directory}`);
  const files = await readModelDirectory(directory, model);
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

function measurementTable(done: readonly (readonly [what: string, measured: CheckMeasurement])[]): string {
  const rows = done.map(([what, { ms, bytes, peakBytes }]) => [
    what,
    timeText(ms),
    sizeText(bytes),
    sizeText(peakBytes),
  ]);
  return table([['done', 'time', 'memory after it', 'peak until then'], ...rows]);
}

function componentTable(components: readonly PipelineComponent[]): string {
  const rows = components.map(({ part, device, refusals, nodes = {}, remark }) => {
    const counts = Object.entries(nodes).map(([name, count]) => `${count} nodes on ${name}`);
    const reasons = refusals.map(({ device: refused, reason }) => `not on ${refused}: ${reason}`);
    return [part, device, [...counts, ...reasons, ...(remark === undefined ? [] : [remark])].join('; ')];
  });
  return table([['part', 'runs on', ''], ...rows]);
}

function factsOf(
  { card, pipelineClass, preview }: ModelDirectory,
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
    ['previews', preview === undefined ? 'none (darkroom.json has no preview)' : 'yes'],
    [
      'timesteps',
      hasTimestepPerRow
        ? 'one per row: pictures at different steps share a call of the model'
        : 'one for all rows: pictures at different steps cost a call of the model each, so batching saves little',
    ],
  ];
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

function timeText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

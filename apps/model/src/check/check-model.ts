import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { type DtypeChoice, isModelId, type PipelineComponent } from '@darkroom/core';
import type { LoadPipelineOptions } from '@darkroom/diffusion';
import { describeModel, readModelDirectory } from '@darkroom/diffusion/model-files';
import type { ModelDescription, ModelDirectory } from '@darkroom/diffusion/model-files';
import { CommandError } from '../command-error.ts';
import { countText, sizeText } from '../number-text.ts';
import { table } from '../table.ts';
import { type CheckPart, checkParts } from './check-message.ts';
import { type CheckResult, runCheck } from './run-check.ts';

export interface CheckModelOptions {
  directory: string;
  dtypes: DtypeChoice;
  /** As a worker with the same settings has them. */
  options: LoadPipelineOptions;
  signal: AbortSignal;
  write: (text: string) => void;
}

/**
 * Says what a model is, loads it and takes one step.
 *
 * @throws DarkroomError or CommandError naming the file and what is wrong.
 */
export async function checkModel(options: CheckModelOptions): Promise<void> {
  const { directory, dtypes, signal, write } = options;
  const isDirectory = await stat(directory).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) throw new CommandError(`there is no directory ${directory}`);
  // A worker on a directory of another name needs MODEL_ID; what is checked here does not depend on it.
  const id = isModelId(basename(resolve(directory))) ? {} : { id: 'unnamed' };
  const chosen = { ...id, dtypes };
  const model = await readModelDirectory(directory, chosen);
  write(`${describe(model, describeModel(model))}\n`);
  const result = await runCheck({ model: { ...options.options, directory, ...chosen } }, signal);
  write(`${measurements(result, model.card.sizes.default)}\n\n${componentTable(result.components)}\n\nok\n`);
}

function measurements(result: CheckResult, { width, height }: { width: number; height: number }): string {
  const work: Readonly<Record<CheckPart, string>> = {
    load: 'loading',
    encode: 'encoding prompts',
    step: `one step, ${width}x${height}`,
    decode: 'decoding',
  };
  const rows = checkParts.map((part) => {
    const { ms, bytes, peakBytes } = result[part];
    return [work[part], timeText(ms), sizeText(bytes), sizeText(peakBytes)];
  });
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

function describe({ card, pipelineClass, preview }: ModelDirectory, description: ModelDescription): string {
  const { sizes, steps, guidance } = card;
  const graphs = description.graphs.map(({ part, files, dtype, parameters, bytes }) => [
    part,
    files.map((file) => file.slice(part.length + 1)).join(', '),
    dtype,
    countText(parameters),
    sizeText(bytes),
  ]);
  const parameters = sum(description.graphs.map((graph) => graph.parameters));
  const bytes = sum(description.graphs.map((graph) => graph.bytes));
  const facts = [
    ['id', card.id],
    ['family', pipelineClass],
    ['sizes', `multiples of ${sizes.multiple} from ${sizes.min} to ${sizes.max}, ${sizeOf(sizes.default)} by default`],
    ['steps', `${steps.min} to ${steps.max}, ${steps.default} by default`],
    ['guidance', `${guidance.min} to ${guidance.max}, ${guidance.default} by default`],
    ['schedulers', `${card.schedulers.join(', ')}; ${card.defaultScheduler} by default`],
    ['prompt', `${card.maxPromptTokens} tokens`],
    ['previews', preview === undefined ? 'none (darkroom.json has no preview)' : 'yes'],
    ['timesteps', timestepText(description)],
  ];
  const parts = table([
    ['part', 'file', 'dtype', 'parameters', 'size'],
    ...graphs,
    ['all', '', '', countText(parameters), sizeText(bytes)],
  ]);
  return `${table(facts)}\n\n${parts}\n`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function timestepText({ hasTimestepPerRow }: ModelDescription): string {
  return hasTimestepPerRow
    ? 'one per row: pictures at different steps share a call of the model'
    : 'one for all rows: pictures at different steps cost a call of the model each, so batching saves little';
}

function sizeOf({ width, height }: { width: number; height: number }): string {
  return `${width}x${height}`;
}

function timeText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

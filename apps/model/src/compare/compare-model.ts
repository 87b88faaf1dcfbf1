import { basename, resolve } from 'node:path';
import { type DtypeChoice, dtypeChoiceText, isModelId, modelDtypes } from '@darkroom/core';
import type { LoadPipelineOptions } from '@darkroom/diffusion';
import { describeModel, listDtypes, readModelDirectory } from '@darkroom/diffusion/model-files';
import { CommandError } from '../command-error.ts';
import { sizeText } from '../number-text.ts';
import { runProcess } from '../run-process.ts';
import { table } from '../table.ts';
import type { CompareMessage, CompareRequest } from './compare-message.ts';
import { listPrompts } from './prompts.ts';
import { psnr } from './psnr.ts';

export interface CompareModelOptions {
  directory: string;
  /** The first is what the others are compared with; empty for fp32 and what else there is. */
  choices: readonly DtypeChoice[];
  /** Pictures of each. */
  prompts: number;
  /** The model's own by default. */
  steps: number | undefined;
  /** Pictures that are made at once. */
  rows: number;
  /** As a worker with the same settings has them. */
  options: LoadPipelineOptions;
  signal: AbortSignal;
  write: (text: string) => void;
}

/** What came of one choice. */
interface Made {
  readonly dtypes: string;
  /** Of the graphs' files. */
  readonly bytes: number;
  readonly pictures: readonly Uint8Array[];
  readonly done: Extract<CompareMessage, { type: 'done' }>;
}

/**
 * Makes the same pictures with a model in several dtypes, and says how far each is from the first.
 *
 * @throws DarkroomError or CommandError naming the file and what is wrong.
 */
export async function compareModel(options: CompareModelOptions): Promise<void> {
  const { directory, prompts, write } = options;
  const { devices = ['cpu'] } = options.options;
  const id = isModelId(basename(resolve(directory))) ? {} : { id: 'unnamed' };
  const choices = options.choices.length === 0 ? await allChoices(directory, id) : options.choices;
  const made: Made[] = [];
  for (const dtypes of choices) {
    const model = await readModelDirectory(directory, { ...id, dtypes });
    const bytes = describeModel(model).graphs.reduce((sum, graph) => sum + graph.bytes, 0);
    made.push({ dtypes: dtypeChoiceText(dtypes), bytes, ...(await makePictures(options, { ...id, dtypes })) });
  }
  write(`${tableOf(made, `${prompts} pictures on ${devices.join(', ')}`)}\n`);
  const changing = made.filter(({ done }) => done.changed > 0).map(({ dtypes }) => dtypes);
  if (changing.length > 0 && devices.every((device) => device === 'cpu')) {
    throw new CommandError(`pictures of ${changing.join(' and ')} depend on what else is in their batch`);
  }
}

/** fp32, then each other dtype that some part has, with fp32 for the parts that lack it. */
async function allChoices(directory: string, id: { id?: string }): Promise<DtypeChoice[]> {
  const fp32: DtypeChoice = { all: 'fp32', parts: {} };
  const { folders } = await readModelDirectory(directory, { ...id, dtypes: fp32 });
  const there = await listDtypes(directory, folders);
  const others = modelDtypes.filter(
    (dtype) => dtype !== 'fp32' && [...there.values()].some((has) => has.includes(dtype)),
  );
  const choices = others.map((all): DtypeChoice => {
    const lacking = [...there].filter(([, has]) => !has.includes(all)).map(([part]) => [part, 'fp32']);
    return { all, parts: Object.fromEntries(lacking) as DtypeChoice['parts'] };
  });
  return [fp32, ...choices];
}

async function makePictures(
  { directory, prompts, steps, rows, options, signal }: CompareModelOptions,
  chosen: { dtypes: DtypeChoice },
): Promise<Pick<Made, 'pictures' | 'done'>> {
  const pictures: Uint8Array[] = [];
  let done: Made['done'] | undefined;
  const model = { ...options, directory, ...chosen };
  const request: CompareRequest = { model, prompts: listPrompts(prompts), steps, rows };
  const end = await runProcess<CompareMessage>({
    program: 'compare/compare-process',
    request,
    signal,
    onMessage: (message) => {
      if (message.type === 'picture') pictures[message.index] = message.data;
      else done = message;
    },
  });
  if (done !== undefined) return { pictures, done };
  throw new CommandError(`After ${pictures.length} pictures in ${dtypeChoiceText(chosen.dtypes)} its process ${end}`);
}

function tableOf(made: readonly Made[], title: string): string {
  const [first] = made;
  const rows = made.map(({ dtypes, bytes, pictures, done }) => {
    const ratios = pictures.map((picture, at) => psnr(picture, first!.pictures[at]!));
    return [
      dtypes,
      sizeText(bytes),
      `${((100 * bytes) / first!.bytes).toFixed(1)} %`,
      decibels(ratios.reduce((sum, value) => sum + value, 0) / ratios.length),
      decibels(Math.min(...ratios)),
      `${(done.ms / 1000 / pictures.length).toFixed(2)} s`,
      sizeText(done.peakBytes),
      done.changed === 0 ? 'same bytes' : `${done.changed} of ${done.tried} differ`,
    ];
  });
  const head = [title, 'size', 'of first', 'PSNR', 'lowest', 'a picture', 'peak memory', 'batched as alone'];
  return table([head, ...rows]);
}

function decibels(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(1)} dB` : 'same';
}

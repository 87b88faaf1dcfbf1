import { type DtypeChoice, dtypeChoiceText } from '@darkroom/core';
import type { LoadModelOptions } from '@darkroom/diffusion';
import { describeModel, listDtypes, pictureDtypes, readModelDirectory } from '@darkroom/diffusion/model-files';
import { isTextModel } from '@darkroom/language/model-files';
import type { CompareCommand } from '../arguments.ts';
import type { CheckModelOptions } from '../check/check-options.ts';
import { CommandError } from '../command-error.ts';
import { sizeText } from '../number-text.ts';
import { runProcess } from '../run-process.ts';
import { table } from '../table.ts';
import type { CompareMessage, CompareRequest, PicturesDone } from './compare-process.ts';

export type CompareModelOptions = CheckModelOptions & Pick<CompareCommand, 'choices' | 'prompts' | 'steps' | 'rows'>;

/** What came of one choice. */
interface Made {
  readonly dtypes: string;
  /** Of the graphs' files. */
  readonly bytes: number;
  readonly pictures: readonly Uint8Array[];
  readonly done: PicturesDone;
}

/**
 * Makes the same pictures with a model in several dtypes, and says how far each is from the first.
 *
 * @throws DarkroomError or CommandError naming the file and what is wrong.
 */
export async function compareModel(options: CompareModelOptions): Promise<void> {
  const { model, choices, prompts, steps, rows, signal, write } = options;
  if (await isTextModel(model.directory))
    throw new CommandError(`${model.directory} is a model of text: compare makes pictures`);
  const { devices = ['cpu'] } = model;
  const made: Made[] = [];
  for (const dtypes of choices.length === 0 ? await allChoices(model) : choices) {
    const chosen = { ...model, dtypes };
    const { graphs } = describeModel(await readModelDirectory(model.directory, chosen));
    const bytes = graphs.reduce((sum, graph) => sum + graph.bytes, 0);
    const text = dtypeChoiceText(dtypes);
    made.push({ dtypes: text, bytes, ...(await makePictures({ model: chosen, prompts, steps, rows }, text, signal)) });
  }
  write(`${tableOf(made, `${prompts} pictures on ${devices.join(', ')}`)}\n`);
  const changing = made.filter(({ done }) => done.changed > 0).map(({ dtypes }) => dtypes);
  if (changing.length > 0 && devices.every((device) => device === 'cpu')) {
    throw new CommandError(`pictures of ${changing.join(' and ')} depend on what else is in their batch`);
  }
}

/** fp32, then each other dtype that some part has, with fp32 for the parts that lack it. */
async function allChoices(model: LoadModelOptions): Promise<DtypeChoice[]> {
  const fp32: DtypeChoice = { all: 'fp32', parts: {} };
  const { folders, path } = await readModelDirectory(model.directory, { ...model, dtypes: fp32 });
  const there = await listDtypes(path, folders);
  const others = pictureDtypes.filter(
    (dtype) => dtype !== 'fp32' && [...there.values()].some((has) => has.includes(dtype)),
  );
  const choices = others.map((all): DtypeChoice => {
    const lacking = [...there].filter(([, has]) => !has.includes(all)).map(([part]) => [part, 'fp32']);
    return { all, parts: Object.fromEntries(lacking) as DtypeChoice['parts'] };
  });
  return [fp32, ...choices];
}

async function makePictures(
  request: CompareRequest,
  dtypes: string,
  signal: AbortSignal,
): Promise<Pick<Made, 'pictures' | 'done'>> {
  const pictures: Uint8Array[] = [];
  let done: PicturesDone | undefined;
  const end = await runProcess({
    program: 'compare/compare-process',
    request,
    signal,
    onMessage: (message: CompareMessage) => {
      if (message.picture !== undefined) pictures.push(message.picture);
      done ??= message.done;
    },
  });
  if (done !== undefined) return { pictures, done };
  throw new CommandError(`After ${pictures.length} pictures in ${dtypes} its process ${end}`);
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

/** Peak signal-to-noise ratio of two pictures of 8 bits, in dB; Infinity for the same bytes. */
function psnr(left: Uint8Array, right: Uint8Array): number {
  let squares = 0;
  for (let at = 0; at < left.length; at++) squares += (left[at]! - right[at]!) ** 2;
  return 10 * Math.log10(255 ** 2 / (squares / left.length));
}

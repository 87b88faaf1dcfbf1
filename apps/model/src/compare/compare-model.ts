import { type DtypeChoice, dtypeChoiceText, itemAt } from '@darkroom/core';
import type { LoadImageModelOptions } from '@darkroom/diffusion';
import { describeModel, listDtypes, imageDtypes, readModelDirectory } from '@darkroom/diffusion/model-files';
import { isTextModel } from '@darkroom/language/model-files';
import type { CompareCommand } from '../command/arguments.ts';
import type { CheckModelOptions } from '../check/check-options.ts';
import { CommandError } from '../command/command-error.ts';
import { sizeText } from '../command/number-text.ts';
import { runProcess } from '../command/run-process.ts';
import { table } from '../command/table.ts';
import type { CompareMessage, CompareRequest, ImagesDone } from './compare-process.ts';

export type CompareModelOptions = CheckModelOptions & Pick<CompareCommand, 'choices' | 'prompts' | 'steps' | 'rows'>;

/** Result for one dtype choice. */
interface Made {
  readonly dtypes: string;
  /** Total size of the graphs' files. */
  readonly bytes: number;
  readonly images: readonly Uint8Array[];
  readonly done: ImagesDone;
}

/**
 * Makes the same images with a model in several dtypes and compares each with the first.
 *
 * @throws DarkroomError or CommandError naming the file and what is wrong.
 */
export async function compareModel(options: CompareModelOptions): Promise<void> {
  const { model, choices, prompts, steps, rows, signal, write } = options;
  if (await isTextModel(model.directory))
    throw new CommandError(`${model.directory} is a text model, expected an image model`);
  const { devices = ['cpu'] } = model;
  const made: Made[] = [];
  for (const dtypes of choices.length === 0 ? await allChoices(model) : choices) {
    const chosen = { ...model, dtypes };
    const { graphs } = describeModel(await readModelDirectory(model.directory, chosen));
    const bytes = graphs.reduce((sum, graph) => sum + graph.bytes, 0);
    const text = dtypeChoiceText(dtypes);
    made.push({ dtypes: text, bytes, ...(await makeImages({ model: chosen, prompts, steps, rows }, text, signal)) });
  }
  write(`${tableOf(made, `${prompts} images on ${devices.join(', ')}`)}\n`);
  const changing = made.filter(({ done }) => done.changed > 0).map(({ dtypes }) => dtypes);
  if (changing.length > 0 && devices.every((device) => device === 'cpu')) {
    throw new CommandError(`images of ${changing.join(' and ')} depend on what shares their batch`);
  }
}

/** Returns fp32, then every other dtype that some part has, with fp32 for parts that lack it. */
async function allChoices(model: LoadImageModelOptions): Promise<DtypeChoice[]> {
  const fp32: DtypeChoice = { all: 'fp32', parts: {} };
  const { folders, path } = await readModelDirectory(model.directory, { ...model, dtypes: fp32 });
  const there = await listDtypes(path, folders);
  const others = imageDtypes.filter(
    (dtype) => dtype !== 'fp32' && [...there.values()].some((has) => has.includes(dtype)),
  );
  const choices = others.map((all): DtypeChoice => {
    const lacking = [...there].filter(([, has]) => !has.includes(all)).map(([part]) => [part, 'fp32']);
    return { all, parts: Object.fromEntries(lacking) as DtypeChoice['parts'] };
  });
  return [fp32, ...choices];
}

async function makeImages(
  request: CompareRequest,
  dtypes: string,
  signal: AbortSignal,
): Promise<Pick<Made, 'images' | 'done'>> {
  const images: Uint8Array[] = [];
  let done: ImagesDone | undefined;
  const end = await runProcess({
    program: 'compare/compare-process',
    request,
    signal,
    onMessage: (message: CompareMessage) => {
      if (message.image !== undefined) images.push(message.image);
      done ??= message.done;
    },
  });
  if (done !== undefined) return { images, done };
  throw new CommandError(`After ${images.length} images in ${dtypes} its process ${end}`);
}

function tableOf(made: readonly Made[], title: string): string {
  const [first] = made;
  const rows = made.map(({ dtypes, bytes, images, done }) => {
    const ratios = images.map((image, at) => psnr(image, itemAt(first!.images, at)));
    return [
      dtypes,
      sizeText(bytes),
      `${((100 * bytes) / first!.bytes).toFixed(1)} %`,
      decibels(ratios.reduce((sum, value) => sum + value, 0) / ratios.length),
      decibels(Math.min(...ratios)),
      `${(done.ms / 1000 / images.length).toFixed(2)} s`,
      sizeText(done.peakBytes),
      done.changed === 0 ? 'same bytes' : `${done.changed} of ${done.tried} differ`,
    ];
  });
  const head = [title, 'size', 'of first', 'PSNR', 'lowest', 'an image', 'peak memory', 'batched as alone'];
  return table([head, ...rows]);
}

function decibels(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(1)} dB` : 'same';
}

/** Returns the peak signal-to-noise ratio of two 8-bit images, in dB; Infinity for equal bytes. */
function psnr(left: Uint8Array, right: Uint8Array): number {
  let squares = 0;
  for (let at = 0; at < left.length; at++) squares += (itemAt(left, at) - itemAt(right, at)) ** 2;
  return 10 * Math.log10(255 ** 2 / (squares / left.length));
}

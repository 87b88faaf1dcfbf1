/** Tests two tiny models that read images against transformers: tools/golden/record-vision.py. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { decodeRgb } from '@darkroom/imaging';
import { type ChatPart, imagePrompt, type TextInput } from '@darkroom/kinds';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { lastOf } from '../decoder/decoder.ts';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import { differenceOf, textInput, type TextResult, TextTable } from '../testing/text-table.ts';
import type { TextRow } from '../row/text-row.ts';
import { ImageEncoder } from '../vision/image-encoder.ts';
import { loadTextPipeline } from './load-text-pipeline.ts';
import type { TextPipeline } from './text-pipeline.ts';

interface Case {
  images: string[];
  prompt: number[];
  /** First and last numbers of all embeddings. */
  first: number[];
  last: number[];
  tokens: number[];
  /** Log probability of each token. */
  logprobs: number[];
}

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/vision');
const attachmentsOf = async ({ images }: Pick<Case, 'images'>) =>
  new Map<string, Uint8Array>(
    await Promise.all(images.map(async (name, at) => [`image-${at}`, await readFile(join(vectors, name))] as const)),
  );
const inputOf = ({ prompt }: Pick<Case, 'prompt'>, changes: Partial<TextInput> = {}) =>
  textInput({ prompt, maxTokens: 12, ignoreEos: true, ...changes });

describe.each(['llava', 'idefics3'])('images in prompts of %s', (name) => {
  const directory = join(vectors, name);
  let pipeline: TextPipeline;
  let cases: Case[];
  beforeAll(async () => {
    cases = JSON.parse(await readFile(join(directory, 'cases.json'), 'utf8')) as Case[];
    pipeline = await loadTextPipeline({ directory, threads: 1, stepTokens: 16 });
  });
  afterAll(() => pipeline.dispose());

  const write = async (each: Case, changes: Partial<TextInput> = {}, owner?: string) =>
    new TextTable(pipeline).write(inputOf(each, changes), undefined, {
      attachments: await attachmentsOf(each),
      ...(owner !== undefined && { owner }),
    });

  it('become the same tokens as by the processor of transformers', async () => {
    const { card, codec } = await readTextModelDirectory(directory);
    for (const each of cases) {
      const images = await Promise.all([...(await attachmentsOf(each)).values()].map(decodeRgb));
      const content: ChatPart[] = [
        ...images.map(() => ({ type: 'image' }) as const),
        { type: 'text', text: 'what is it?' },
      ];
      const texts = images.map((image) => imagePrompt(card.images!, image));
      const rendered = codec.renderChat([{ role: 'user', content }]);
      let at = 0;
      const prompt = rendered.replaceAll(card.images!.token, () => texts[at++]!);
      expect(codec.encode(prompt, { addSpecialTokens: false })).toEqual(each.prompt);
    }
  });

  it('have the embeddings of transformers', async () => {
    const { config, imageGraphs } = await readTextModelDirectory(directory);
    const { images, hiddenSize: width } = config;
    const encoder = await ImageEncoder.load({ directory, graph: imageGraphs!.encoder, images: images!, width });
    for (const each of cases) {
      const all: number[] = [];
      for (const file of (await attachmentsOf(each)).values())
        all.push(...(await lastOf(encoder.encode(await decodeRgb(file)))));
      for (const [found, expected] of [
        [all.slice(0, 64), each.first],
        [all.slice(-64), each.last],
      ] as const)
        for (const [at, value] of expected.entries())
          expect(Math.abs(found[at]! - value)).toBeLessThan(2e-5 * Math.max(10, Math.abs(value)));
    }
    await encoder.dispose();
  });

  it('are answered with the tokens and log probabilities of transformers', async () => {
    for (const each of cases) {
      const { tokens, events } = await write(each, { logprobs: 0 });
      expect(tokens).toEqual(each.tokens);
      const found = events.flatMap((event) => (event.type === 'delta' ? logprobsOf(event.facts?.['logprobs']) : []));
      expect(found).toHaveLength(12);
      for (const [at, value] of each.logprobs.entries()) expect(found[at]).toBeCloseTo(value, 3);
    }
  });

  it('are answered with the same bits alone, beside other rows, and from a checkpoint', async () => {
    const changes = { logprobs: 3, temperature: 1 };
    const alone: TextResult[] = [];
    for (const each of cases) alone.push(await write(each, changes, 'first'));
    const table = new TextTable(pipeline);
    for (const [at, each] of cases.entries()) {
      const checkpoint = at % 2 === 0 ? undefined : alone[at]!.checkpoints[3];
      const attachments = await attachmentsOf(each);
      await table.join(`${at}`, inputOf(each, changes), checkpoint, { owner: 'second', attachments });
      await table.tick();
    }
    await table.run();
    expect(alone.map((one, at) => differenceOf(table.results.get(`${at}`)!, one))).toEqual(cases.map(() => ''));
  });

  it('are read from the prefix cache if the same image stands at the same place', async () => {
    const one = cases[0]!;
    const again = await loadTextPipeline({ directory, threads: 1 });
    const changed = new Map([['image-0', await sharp(join(vectors, one.images[0]!)).negate().png().toBuffer()]]);
    const ask = async (attachments: Awaited<ReturnType<typeof attachmentsOf>>) =>
      (await new TextTable(again).write(inputOf(one), undefined, { attachments })).facts.cached_tokens;
    expect(await ask(await attachmentsOf(one))).toBe(0);
    expect(await ask(await attachmentsOf(one))).toBeGreaterThan(one.prompt.lastIndexOf(imageToken(again)));
    expect(await ask(changed)).toBeLessThanOrEqual(one.prompt.indexOf(imageToken(again)));
    await again.dispose();
  });

  it('are encoded in parts while other rows write, else at once', async () => {
    const each = cases[3]!;
    const createRow = async (
      input: TextInput,
      owner: string,
      attachments?: Awaited<ReturnType<typeof attachmentsOf>>,
    ) => {
      const [row] = await pipeline.createRows({ id: owner, owner, input, ...(attachments && { attachments }) });
      return row!;
    };
    /** Steps until the model has read the first tokens of a new row with an image. */
    const stepsUntilRead = async (owner: string, between: () => Promise<unknown>) => {
      const row = await createRow(inputOf(each), owner, await attachmentsOf(each));
      let steps = 0;
      for (; row.cache.length === 0; steps++) {
        await pipeline.step([row]);
        await between();
      }
      pipeline.release(row);
      return steps;
    };
    expect(await stepsUntilRead('alone', () => Promise.resolve())).toBe(2);
    const writer = await createRow(textInput({ prompt: [2], maxTokens: 200, ignoreEos: true }), 'writes');
    for (let at = 0; at < 3; at++) await pipeline.step([writer]);
    const written = writer.written.tokens.length;
    const steps = await stepsUntilRead('beside', () => pipeline.step([writer]));
    // One tile and a chunk of the prompt; or several tiles.
    expect(steps).toBeGreaterThan(name === 'llava' ? 1 : 4);
    expect(writer.written.tokens.length - written).toBe(steps);
    pipeline.release(writer);
  });

  it('have the order of their names, whatever the order in which the store returns them', async () => {
    const each = cases[4]!;
    const attachments = new Map([...(await attachmentsOf(each))].toReversed());
    const { tokens } = await new TextTable(pipeline).write(inputOf(each), undefined, { owner: 'third', attachments });
    expect(tokens).toEqual(each.tokens);
  });

  it('of one prompt delay another prompt without images by one image at most', async () => {
    const [large, small] = [cases[4]!, textInput({ prompt: [2, 2, 2, 2], maxTokens: 1, ignoreEos: true })];
    const looks = await pipeline.createRows({
      id: 'looks',
      owner: 'looks',
      input: inputOf(large),
      attachments: await attachmentsOf(large),
    });
    const reads = await pipeline.createRows({ id: 'reads', owner: 'reads', input: small });
    const rows = [...looks, ...reads] as [TextRow, TextRow];
    for (let step = 0; step < 2; step++) await pipeline.step(rows);
    expect(rows.map(({ isDone }) => isDone)).toEqual([false, true]);
    for (const row of rows) pipeline.release(row);
  });

  it('must be as many as the prompt has places for', async () => {
    const { prompt } = cases[0]!;
    await expect(new TextTable(pipeline).write(inputOf({ prompt }))).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(/^prompt: has \d+ image tokens, expected 0 for 0 images$/) as string,
    });
    const broken = new Map([['image-0', new TextEncoder().encode('no image')]]);
    await expect(
      new TextTable(pipeline).write(inputOf({ prompt }), undefined, { attachments: broken }),
    ).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'image-0: is not a readable image',
    });
  });
});

/** Returns the log probabilities in lines of JSON. */
function logprobsOf(lines: unknown): number[] {
  const all = String(lines).split('\n').slice(0, -1);
  return all.map((line) => (JSON.parse(line) as { logprob: number }).logprob);
}

function imageToken({ card }: TextPipeline): number {
  return card.images!.tokenId;
}

describe('the directory of a model that reads images', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'darkroom-vision-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** Loads a copy of a model with changed JSON files. */
  const load = async (name: string, changes: Record<string, object>) => {
    const copy = join(directory, 'copy');
    await rm(copy, { recursive: true, force: true });
    await cp(join(vectors, name), copy, { recursive: true });
    for (const [file, fields] of Object.entries(changes)) {
      const json = JSON.parse(await readFile(join(copy, file), 'utf8')) as object;
      await writeFile(join(copy, file), JSON.stringify({ ...json, ...fields }));
    }
    const pipeline = await loadTextPipeline({ directory: copy, threads: 1 });
    await pipeline.dispose();
    return pipeline.card;
  };

  it('has the image token, the tokens per image and the limit of images in its card', async () => {
    expect((await load('llava', { 'config.json': { max_images: 3 } })).images).toEqual({
      token: '<image>',
      tokenId: 3,
      perTile: 16,
      minImages: 0,
      maxImages: 3,
    });
    expect((await load('idefics3', {})).images).toMatchObject({ perTile: 4, tiling: { side: 32, longestSide: 128 } });
  });

  it('is rejected with the file and the field that do not fit', async () => {
    const failures = [
      [
        'llava',
        { 'config.json': { image_token_id: 999 } },
        'config.json: image_token_id: 999 is not a token of tokenizer.json',
      ],
      [
        'llava',
        { 'preprocessor_config.json': { resample: 0 } },
        'preprocessor_config.json: resample: is not supported, expected 1 (Lanczos), 2 (bilinear) or 3 (bicubic); it is 0',
      ],
      [
        'llava',
        { 'preprocessor_config.json': { do_resize: false } },
        'preprocessor_config.json: do_resize: is not supported, expected true; it is false',
      ],
      [
        'llava',
        { 'config.json': { vision_config: { image_size: 32, patch_size: 16 } } },
        'onnx/vision_encoder.onnx: image_features is [num_images, 16, 32], expected by the configuration […, 4, 32]',
      ],
      [
        'idefics3',
        { 'preprocessor_config.json': { size: { shortest_edge: 5 } } },
        'preprocessor_config.json: size: expected {"longest_edge"}',
      ],
      [
        'idefics3',
        { 'preprocessor_config.json': { do_image_splitting: false } },
        'preprocessor_config.json: do_image_splitting: is not supported, expected true; it is false',
      ],
      [
        'llava',
        { 'preprocessor_config.json': { crop_size: { height: 16, width: 16 } } },
        'preprocessor_config.json: crop_size: expected 32, the image_size of config.json',
      ],
    ] as const;
    for (const [name, changes, message] of failures)
      await expect(load(name, changes)).rejects.toMatchObject({ code: 'model_unsupported', message });
  });
});

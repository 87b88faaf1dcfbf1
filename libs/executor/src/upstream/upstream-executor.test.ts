/** Runs the conformance suite on executors in front of fake servers, for each protocol. */
import { join } from 'node:path';
import type { ImageInput, UpstreamTextParams, UpstreamTextInput } from '@darkroom/kinds';
import { afterAll, describe } from 'vitest';
import { describeExecutor, type ExecutorSubject } from '../conformance/executor-conformance.ts';
import { ToyComfyui } from '../testing/toy-comfyui.ts';
import { ToyLlamaCpp } from '../testing/toy-llama-cpp.ts';
import { ToyOpenai } from '../testing/toy-openai.ts';
import { ToySdcpp } from '../testing/toy-sdcpp.ts';
import { createComfyui } from './comfyui/comfyui.ts';
import { createLlamaCpp } from './llama-cpp.ts';
import { createOpenai } from './openai.ts';
import { Sdcpp } from './sdcpp.ts';
import { UpstreamExecutor } from './upstream-executor.ts';

const text = (params: UpstreamTextParams, changes: Partial<UpstreamTextInput> = {}): UpstreamTextInput => ({
  params,
  n: 1,
  seed: 1,
  maxTokens: params.max_tokens ?? 4096,
  ...changes,
});
const user = (content: string) => [{ role: 'user', content }];

const prompts = {
  shortInput: ({ number, outputs }) =>
    text({ prompt: `${number} wishes`, max_tokens: 5 }, { n: outputs, seed: number }),
  longInput: text({ prompt: 'wish' }),
} satisfies Partial<ExecutorSubject>;
const chats = {
  shortInput: ({ number, outputs }) =>
    text({ messages: user(`${number} wishes`), max_tokens: 5 }, { n: outputs, seed: number }),
  longInput: text({ messages: user('wish') }),
} satisfies Partial<ExecutorSubject>;

const image = (changes: Partial<ImageInput>): ImageInput => ({
  prompt: 'a wish',
  negativePrompt: '',
  width: 64,
  height: 64,
  n: 1,
  numInferenceSteps: 4,
  guidanceScale: 1,
  guidanceRescale: 0,
  seed: 1,
  scheduler: 'upstream',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 1,
  ...changes,
});

describe('with a server', async () => {
  const llama = new ToyLlamaCpp();
  const openai = new ToyOpenai();
  const comfyui = new ToyComfyui();
  const sdcpp = new ToySdcpp();
  const toys = [llama, openai, comfyui, sdcpp];
  const [llamaUrl = '', openaiUrl = '', comfyuiUrl = '', sdcppUrl = ''] = await Promise.all(
    toys.map((toy) => toy.start()),
  );
  afterAll(() => Promise.all(toys.map((toy) => toy.stop())));
  const ofLlama: ExecutorSubject['create'] = (onEvents) =>
    new UpstreamExecutor({ url: llamaUrl, createProtocol: createLlamaCpp, model: 'toy', maxSlots: 8, onEvents });
  const ofOpenai =
    (model: string): ExecutorSubject['create'] =>
    (onEvents) =>
      new UpstreamExecutor({ url: openaiUrl, createProtocol: createOpenai, model, maxSlots: 2, onEvents });

  const contextMessage = 'the request exceeds the available context size';
  describeExecutor('with llama.cpp, with prompts', {
    ...prompts,
    create: ofLlama,
    badInput: { input: text({ prompt: 'this is too long' }), message: contextMessage },
  });
  describeExecutor('with llama.cpp, with messages', {
    ...chats,
    create: ofLlama,
    badInput: { input: text({ messages: user('this is too long') }), message: contextMessage },
  });
  const limitMessage = 'This model takes 512 tokens at most.';
  describeExecutor("with OpenAI's API, with prompts", {
    ...prompts,
    create: ofOpenai('toy_writer'),
    badInput: { input: text({ prompt: 'this is too long' }), message: limitMessage },
  });
  describeExecutor("with OpenAI's API, with messages", {
    ...chats,
    create: ofOpenai('toy_writer'),
    badInput: { input: text({ messages: user('this is too long') }), message: limitMessage },
  });
  describeExecutor("with OpenAI's API, with images", {
    shortInput: ({ number, outputs }) => image({ prompt: `${number} wishes`, n: outputs }),
    longInput: image({ width: 4096, height: 4096 }),
    create: ofOpenai('gpt-image-toy'),
    badInput: { input: image({ prompt: 'too long' }), message: 'It takes no such thing.' },
  });
  const workflow = join(import.meta.dirname, '../testing/workflows/text-to-image.json');
  describeExecutor('with ComfyUI', {
    shortInput: ({ number, outputs }) => image({ prompt: `${number} wishes`, n: outputs }),
    longInput: image({ prompt: 'forever' }),
    create: (onEvents) =>
      new UpstreamExecutor({
        url: comfyuiUrl,
        createProtocol: createComfyui({ workflow }),
        model: 'toy',
        onEvents,
      }),
    badInput: { input: image({ width: 20_000 }), message: 'Value 20000 bigger than max of 16384' },
  });
  describeExecutor("with stable-diffusion.cpp's server", {
    shortInput: ({ number, outputs }) => image({ prompt: `${number} wishes`, n: outputs }),
    longInput: image({ prompt: 'forever', n: 2 }),
    create: (onEvents) =>
      new UpstreamExecutor({
        url: sdcppUrl,
        createProtocol: (options) => new Sdcpp({ ...options, pollMs: 1 }),
        model: 'toy',
        onEvents,
      }),
    badInput: { input: image({ width: 100 }), message: 'invalid generation parameters' },
  });
});

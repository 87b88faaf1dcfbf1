import type { ImageCard, ImageInput, RequestPolicy, TextCard, UpstreamTextCard } from '@darkroom/kinds';

/** A small image model; tests change what they are about. */
export const imageCard: ImageCard = {
  id: 'tiny',
  created: 1_700_000_000,
  ownedBy: 'tests',
  kind: 'image',
  pipeline: 'StableDiffusionPipeline',
  sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 128 } },
  steps: { min: 1, max: 200, default: 12 },
  guidance: { min: 1, max: 20, default: 3 },
  schedulers: ['ddim', 'euler'],
  defaultScheduler: 'ddim',
  maxPromptTokens: 77,
};

/** A small text model with the vocabulary of the embedded ones. */
export const textCard: TextCard = {
  id: 'writer',
  created: 1_700_000_000,
  ownedBy: 'tests',
  kind: 'text',
  pipeline: 'LlamaForCausalLM',
  mode: 'autoregressive',
  maxModelTokens: 256,
  vocabularySize: 6144,
  codec: 'of-writer',
  hasChatTemplate: true,
  hasTools: false,
  defaults: { maxTokens: 24, temperature: 0, topP: 1, topK: 0 },
  deterministic: { is: true },
};

/** A text model of another server, which tokenizes there. */
export const upstreamTextCard: UpstreamTextCard = {
  id: 'far-away',
  created: 1_700_000_000,
  ownedBy: 'others',
  kind: 'text',
  pipeline: 'openai',
  mode: 'autoregressive',
  hasChatTemplate: true,
  deterministic: { is: false, reason: 'another server runs it' },
};

/** The server's part of a request: a model without files, default timeouts, and 42 as the drawn seed. */
export const requestPolicy: RequestPolicy = {
  timeoutS: { default: 600, max: 3600 },
  webhooks: { allowPrivate: false },
  drawSeed: () => 42,
  readAsset: () => Promise.reject(new Error('this model has no files')),
};

/** The validated input of a small image. */
export const imageInput: ImageInput = {
  prompt: 'a fox',
  negativePrompt: '',
  width: 16,
  height: 16,
  n: 1,
  numInferenceSteps: 4,
  guidanceScale: 1,
  guidanceRescale: 0,
  seed: 7,
  scheduler: 'ddim',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 2,
};

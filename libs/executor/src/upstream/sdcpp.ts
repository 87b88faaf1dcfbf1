/** stable-diffusion.cpp's server: its own API of jobs, under `/sdcpp/v1`, as its `api.md` describes it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { RowOutput } from '@darkroom/core';
import { type ImageCard, type ImageInput, imageSteps, outputFormats, seedOfImage } from '@darkroom/kinds';
import type { CallEvent } from '../calls/backend-client.ts';
import { unavailable, UpstreamError } from '../calls/backend-error.ts';
import { fieldOf, listProperty, numberProperty, textProperty } from './http/fields.ts';
import { toImageOutput } from './image-output.ts';
import { safeReason } from './http/upstream-error.ts';
import type { UpstreamHttp } from './http/upstream-http.ts';
import type {
  CreateUpstreamProtocol,
  UpstreamCall,
  UpstreamInfo,
  UpstreamProtocol,
  UpstreamProtocolOptions,
} from './upstream-protocol.ts';

const capabilitiesPath = '/sdcpp/v1/capabilities';
/** Sides are rounded up to multiples of it by the models that need the largest. */
const sizeMultiple = 64;
const maxSteps = 150;
const maxGuidance = 30;
/** The scheduler that leaves the choice to the server. */
const serversChoice = 'auto';
/** Max size of a job with its image: 16 million pixels of noise as PNG, in base64. */
const maxJobBytes = 64 * 1024 * 1024;
const submitTimeoutMs = 30_000;
const cancelTimeoutMs = 5000;
const defaultPollMs = 500;
/** Ids of adapters: what a request may have. */
const loraId = /^[\w. -]{1,64}$/;

export const createSdcpp: CreateUpstreamProtocol = (options) => new Sdcpp(options);

export class Sdcpp implements UpstreamProtocol {
  readonly #http: UpstreamHttp;
  readonly #model: string;
  readonly #pollMs: number;
  readonly #created = Math.floor(Date.now() / 1000);
  /** Paths of adapters by their ids. */
  #loras = new Map<string, string>();
  #formats: readonly unknown[] = [];

  /** @param options.pollMs time between two queries of a job. */
  constructor({ http, model, pollMs = defaultPollMs }: UpstreamProtocolOptions & { pollMs?: number }) {
    this.#http = http;
    this.#model = model;
    this.#pollMs = pollMs;
  }

  async describe(signal: AbortSignal): Promise<UpstreamInfo> {
    const capabilities = await this.#capabilities(signal);
    const ofMode = (name: string): unknown => fieldOf(fieldOf(capabilities, `${name}_by_mode`), 'img_gen');
    this.#loras = new Map(
      listProperty(capabilities, 'loras')
        .map((lora): [string, string] => [textProperty(lora, 'name') ?? '', textProperty(lora, 'path') ?? ''])
        .filter(([name]) => loraId.test(name)),
    );
    this.#formats = (ofMode('output_formats') as unknown[] | undefined) ?? [];
    // The server runs one job at a time.
    return { card: this.#card(capabilities, ofMode('defaults'), ofMode('features')), slots: 1 };
  }

  async check(signal: AbortSignal): Promise<void> {
    await this.#capabilities(signal);
  }

  async *run(call: UpstreamCall, signal: AbortSignal): AsyncGenerator<CallEvent, RowOutput, void> {
    const input = call.input as ImageInput;
    const secrets = [input.prompt, input.negativePrompt];
    // Not aborted, so that each job can be canceled by its id.
    const submission = { signal: AbortSignal.timeout(submitTimeoutMs), secrets };
    const answer = await this.#http.post('/sdcpp/v1/img_gen', this.#bodyOf(call), submission);
    const job = textProperty(await answer.json(maxJobBytes), 'id');
    if (job === undefined) throw unavailable('answers /sdcpp/v1/img_gen without id');
    let hasEnded = false;
    try {
      for (;;) {
        const state = await this.#read(job, signal);
        const status = textProperty(state, 'status');
        hasEnded = status !== 'queued' && status !== 'generating';
        if (status === 'completed') {
          const [image] = listProperty(fieldOf(state, 'result'), 'images');
          const total = imageSteps(input);
          yield { type: 'progress', done: total, total };
          const file = Buffer.from(textProperty(image, 'b64_json') ?? '', 'base64');
          return toImageOutput(file, { seed: seedOfImage(input.seed, call.index) });
        }
        if (hasEnded) throw unavailable(`broke off: ${safeReason(reasonOf(state), secrets)}`);
        // The server reports no steps, so only a job that waits for others is known to be alive.
        if (status === 'queued') yield undefined;
        await delay(this.#pollMs, undefined, { signal });
      }
    } finally {
      if (!hasEnded) await this.#cancel(job);
    }
  }

  async #capabilities(signal: AbortSignal): Promise<unknown> {
    const capabilities = await this.#http.get(capabilitiesPath, signal);
    if (listProperty(capabilities, 'supported_modes').includes('img_gen')) return capabilities;
    const expected = "expected img_gen in supported_modes of stable-diffusion.cpp's server (UPSTREAM_API=sdcpp)";
    throw new UpstreamError('model_unsupported', `answers ${capabilitiesPath} without a mode for images, ${expected}`);
  }

  #card(capabilities: unknown, defaults: unknown, features: unknown): ImageCard {
    const limits = fieldOf(capabilities, 'limits');
    const sample = fieldOf(defaults, 'sample_params');
    const has = (feature: string): boolean => fieldOf(features, feature) === true;
    const takes = [...(has('init_image') ? ['image' as const] : []), ...(has('mask_image') ? ['mask' as const] : [])];
    const names = listProperty(capabilities, 'samplers').filter((name) => typeof name === 'string');
    const [steps, guidance] = [
      numberProperty(sample, 'sample_steps') ?? 20,
      numberProperty(fieldOf(sample, 'guidance'), 'txt_cfg') ?? 7,
    ];
    return {
      id: this.#model,
      created: this.#created,
      ownedBy: 'stable-diffusion.cpp',
      kind: 'image',
      pipeline: 'stable-diffusion.cpp',
      sizes: {
        multiple: sizeMultiple,
        min: numberProperty(limits, 'min_width') ?? 64,
        max: numberProperty(limits, 'max_width') ?? 2048,
        default: { width: numberProperty(defaults, 'width') ?? 512, height: numberProperty(defaults, 'height') ?? 512 },
      },
      steps: { min: 1, max: Math.max(maxSteps, steps), default: steps },
      guidance: { min: 0, max: Math.max(maxGuidance, guidance), default: guidance },
      schedulers: [serversChoice, ...names],
      defaultScheduler: serversChoice,
      maxPromptTokens: 0,
      ...(takes.includes('image') && { takes }),
      ...(this.#loras.size > 0 && { loras: [...this.#loras.keys()].map((id) => ({ id, rank: 0 })) }),
      unsupported: ['guidance_rescale'],
    };
  }

  #bodyOf({ input, index, attachments }: UpstreamCall): object {
    const image = input as ImageInput;
    const fileOf = (name: string): string => Buffer.from(attachments?.get(name) ?? []).toString('base64');
    const format = this.#formats.includes(image.outputFormat) ? image.outputFormat : outputFormats[0];
    return {
      prompt: image.prompt,
      negative_prompt: image.negativePrompt,
      width: image.width,
      height: image.height,
      seed: seedOfImage(image.seed, index),
      batch_count: 1,
      sample_params: {
        sample_steps: image.numInferenceSteps,
        guidance: { txt_cfg: image.guidanceScale },
        ...(image.scheduler !== serversChoice && { sample_method: image.scheduler }),
      },
      ...(image.image && { init_image: fileOf('image'), strength: image.strength }),
      ...(image.mask && { mask_image: fileOf('mask') }),
      ...(image.loras && {
        lora: image.loras.map(({ id, scale }) => ({ path: this.#loras.get(id), multiplier: scale })),
      }),
      output_format: format,
      output_compression: image.outputCompression,
      // The server would write the prompt into the file.
      embed_image_metadata: false,
    };
  }

  #read(job: string, signal: AbortSignal): Promise<unknown> {
    return this.#http.getState(`/sdcpp/v1/jobs/${job}`, signal, {
      maxBytes: maxJobBytes,
      missing: 'no longer has the job: it was restarted',
    });
  }

  /** Cancels a job that waits. The server finishes one that runs. */
  async #cancel(job: string): Promise<void> {
    const options = { signal: AbortSignal.timeout(cancelTimeoutMs), secrets: [] };
    await this.#http.post(`/sdcpp/v1/jobs/${job}/cancel`, {}, options).then(
      (answer) => answer.endSoon(),
      () => {},
    );
  }
}

function reasonOf(state: unknown): string {
  return textProperty(fieldOf(state, 'error'), 'message') ?? 'no reason';
}

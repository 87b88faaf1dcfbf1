/** Fake stable-diffusion.cpp server, following its `api.md`: jobs that run one at a time. */
import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { toyPng } from './toy-png.ts';
import { ToyServer } from './toy-server.ts';

interface ToyJob {
  id: string;
  status: 'queued' | 'generating' | 'completed' | 'failed' | 'cancelled';
  body: Record<string, unknown>;
  image?: string;
}

/** Fields of a body that the server reads. */
const fields = new Set([
  'prompt',
  'negative_prompt',
  'width',
  'height',
  'seed',
  'batch_count',
  'sample_params',
  'init_image',
  'mask_image',
  'strength',
  'lora',
  'output_format',
  'output_compression',
  'embed_image_metadata',
]);

export class ToySdcpp extends ToyServer {
  readonly jobs = new Map<string, ToyJob>();
  #isWorking = false;
  loras: object[] = [{ name: 'pixels', path: 'styles/pixels.safetensors' }];
  /** Runs before a job begins to generate. */
  beforeJob: (job: ToyJob) => void | Promise<void> = () => {};

  override stop(): Promise<unknown> {
    // As a server that is restarted.
    this.jobs.clear();
    return super.stop();
  }

  protected override answer(path: string, body: Record<string, unknown> | undefined, response: ServerResponse) {
    if (path === '/sdcpp/v1/capabilities') return this.sendJson(response, this.#capabilities());
    if (path === '/sdcpp/v1/img_gen' && body !== undefined) return this.#submit(body, response);
    const [, id = '', cancel] = /^\/sdcpp\/v1\/jobs\/(\w+)(\/cancel)?$/.exec(path) ?? [];
    const job = this.jobs.get(id);
    if (job === undefined) return this.sendJson(response, { error: 'job not found' }, 404);
    if (cancel !== undefined && job.status === 'generating')
      return this.sendJson(response, { error: 'job is currently generating and cannot be interrupted yet' }, 409);
    if (cancel !== undefined && job.status === 'queued') job.status = 'cancelled';
    const { status, image } = job;
    const result = image === undefined ? null : { output_format: 'png', images: [{ index: 0, b64_json: image }] };
    const hasFailed = status === 'failed' || status === 'cancelled';
    const error = hasFailed
      ? { code: 'generation_failed', message: `no image of ${String(job.body['prompt'])}` }
      : null;
    return this.sendJson(response, { id, kind: 'img_gen', status, queue_position: 0, result, error });
  }

  #capabilities(): object {
    const features = { init_image: true, mask_image: true, lora: true, cancel_queued: true, cancel_generating: false };
    const sample_params = { sample_method: 'euler_a', sample_steps: 20, guidance: { txt_cfg: 7 } };
    return {
      model: { name: 'toy.gguf', stem: 'toy', path: '/models/toy.gguf' },
      current_mode: 'img_gen',
      supported_modes: ['img_gen'],
      defaults_by_mode: { img_gen: { width: 512, height: 512, strength: 0.75, sample_params } },
      output_formats_by_mode: { img_gen: ['png', 'jpeg'] },
      features_by_mode: { img_gen: features },
      samplers: ['euler', 'euler_a'],
      schedulers: ['discrete'],
      loras: this.loras,
      limits: { min_width: 64, max_width: 4096, min_height: 64, max_height: 4096, max_queue_size: 64 },
    };
  }

  /** The second image of this prompt waits for that of another client until it is canceled. */
  #waits({ id, status, body }: ToyJob): boolean {
    return body['prompt'] === 'forever' && body['seed'] !== 1 && status === 'queued' && this.jobs.has(id);
  }

  #submit(body: Record<string, unknown>, response: ServerResponse): void {
    const unknown = Object.keys(body).find((name) => !fields.has(name));
    const isInvalid = typeof body['prompt'] !== 'string' || unknown !== undefined || body['width'] === 100;
    if (isInvalid) return this.sendJson(response, { error: 'invalid generation parameters' }, 400);
    const id = `job_${this.jobs.size}`;
    this.jobs.set(id, { id, status: 'queued', body });
    this.sendJson(response, { id, kind: 'img_gen', status: 'queued', created: 1 }, 202);
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    for (const job of this.jobs.values()) {
      if (job.status !== 'queued') continue;
      while (this.#waits(job)) await setImmediate();
      if (job.status !== 'queued') continue;
      job.status = 'generating';
      await this.beforeJob(job);
      const hasFailed = String(job.body['prompt']).includes('boom');
      if (!hasFailed) job.image = (await toyPng(JSON.stringify(job.body))).toString('base64');
      job.status = hasFailed ? 'failed' : 'completed';
    }
    this.#isWorking = false;
  }
}

/**
 * ComfyUI: a workflow in API format is a model. A prompt is submitted over `/prompt` and followed over `/ws`; its image
 * comes from `/history` and `/view`.
 */
import { randomUUID } from 'node:crypto';
import type { RowOutput } from '@darkroom/core';
import { imageAttachments, type ImageAttachment, type ImageInput, seedOfImage } from '@darkroom/kinds';
import type { BackendCall, CallEvent } from '../../calls/backend-client.ts';
import { unavailable, UpstreamError } from '../../calls/backend-error.ts';
import { fieldOf, listProperty, textProperty } from '../http/fields.ts';
import { safeReason } from '../http/upstream-error.ts';
import type { UpstreamHttp } from '../http/upstream-http.ts';
import type { CreateUpstreamProtocol, UpstreamInfo, UpstreamProtocol } from '../upstream-protocol.ts';
import type { UpstreamSocket } from '../http/upstream-socket.ts';
import { type ComfyMessage, readComfyMessage } from './comfy-message.ts';
import { StepCounter } from './step-counter.ts';
import { toImageOutput } from '../image-output.ts';
import { Workflow } from './workflow.ts';
import { readWorkflowFile } from './workflow-file.ts';

const maxMessageBytes = 16 * 1024 * 1024;
/** Max size of a queue: each of its prompts has a full workflow. */
const maxQueueBytes = 64 * 1024 * 1024;
const maxImageBytes = 64 * 1024 * 1024;
const submitTimeoutMs = 30_000;
const promptMissing = 'no longer has the prompt: another client deleted it';
const cancelTimeoutMs = 5000;
const defaultPollMs = 5000;

export interface ComfyuiOptions {
  /** Path of the file of UPSTREAM_WORKFLOW. */
  workflow: string;
  /** Time without a message about a prompt after which the server's queue is queried, ms. */
  pollMs?: number;
}

/** @throws DarkroomError `model_unsupported` if the file is invalid. */
export function createComfyui({ workflow, pollMs = defaultPollMs }: ComfyuiOptions): CreateUpstreamProtocol {
  const read = new Workflow(readWorkflowFile(workflow));
  const created = Math.floor(Date.now() / 1000);
  const card = read.card({ id: '', created });
  return ({ http, model }) => new Comfyui({ http, workflow: read, card: { ...card, id: model }, pollMs });
}

interface Submitted {
  prompt: string;
  steps: StepCounter;
  secrets: readonly string[];
}

class Comfyui implements UpstreamProtocol {
  readonly #http: UpstreamHttp;
  readonly #workflow: Workflow;
  readonly #card: ReturnType<Workflow['card']>;
  readonly #pollMs: number;

  constructor(options: { http: UpstreamHttp; workflow: Workflow; card: ReturnType<Workflow['card']>; pollMs: number }) {
    this.#http = options.http;
    this.#workflow = options.workflow;
    this.#card = options.card;
    this.#pollMs = options.pollMs;
  }

  async describe(signal: AbortSignal): Promise<UpstreamInfo> {
    await this.check(signal);
    for (const type of this.#workflow.nodeTypes) {
      const info = await this.#http.get(`/object_info/${encodeURIComponent(type)}`, signal);
      if (fieldOf(info, type) === undefined)
        throw new UpstreamError('model_unsupported', `has no node type ${type}, expected all of the workflow's`);
    }
    // ComfyUI runs one prompt at a time.
    return { card: this.#card, slots: 1 };
  }

  async check(signal: AbortSignal): Promise<void> {
    const answer = await this.#http.get('/prompt', signal);
    if (fieldOf(answer, 'exec_info') !== undefined) return;
    const expected = 'expected ComfyUI (UPSTREAM_API=comfyui)';
    throw new UpstreamError('model_unsupported', `answers /prompt without exec_info, ${expected}`);
  }

  async *run(call: BackendCall, signal: AbortSignal): AsyncGenerator<CallEvent, RowOutput, void> {
    const input = call.input as ImageInput;
    const secrets = [input.prompt, input.negativePrompt];
    const clientId = randomUUID();
    // The server sends events to the client that submitted the prompt, if it is connected by then.
    const socket = await this.#http.openSocket(`/ws?clientId=${clientId}`, signal, maxMessageBytes);
    const steps = new StepCounter(input, this.#workflow);
    const submitted: Submitted = { prompt: randomUUID(), steps, secrets };
    let hasLeft = false;
    try {
      const files = await this.#upload(call, signal);
      const body = {
        prompt: this.#workflow.fill(input, call.index, files),
        client_id: clientId,
        // Versions before 2025 choose an id of their own.
        prompt_id: submitted.prompt,
      };
      const readRejection = (answer: unknown): UpstreamError => this.#rejection(answer, secrets);
      // Not aborted, so that no prompt is queued after its cancellation.
      const options = { signal: AbortSignal.timeout(submitTimeoutMs), secrets, readRejection };
      const answer = await this.#http.post('/prompt', body, options);
      submitted.prompt = textProperty(await answer.json(maxMessageBytes), 'prompt_id') ?? submitted.prompt;
      const failure = yield* this.#follow(socket, submitted, signal);
      hasLeft = true;
      if (failure !== undefined) throw failure;
      const file = await this.#download(submitted.prompt, signal);
      yield steps.end();
      return toImageOutput(file, { seed: seedOfImage(input.seed, call.index) });
    } finally {
      socket.close();
      await (hasLeft ? this.#forget(submitted.prompt) : this.#cancel(submitted.prompt)).catch(() => {});
    }
  }

  /** Returns the names of the request's input files on the server. */
  async #upload({ attachments }: BackendCall, signal: AbortSignal): Promise<Map<ImageAttachment, string>> {
    const names = new Map<ImageAttachment, string>();
    for (const attachment of imageAttachments) {
      const data = attachments?.get(attachment);
      if (data === undefined) continue;
      const form = new FormData();
      form.set('image', new Blob([new Uint8Array(data)], { type: 'image/png' }), `${randomUUID()}.png`);
      // The server empties this directory when it starts.
      form.set('type', 'temp');
      const answer = await this.#http.post('/upload/image', form, { signal, secrets: [] });
      const name = textProperty(await answer.json(maxMessageBytes), 'name');
      if (name === undefined) throw unavailable('answers /upload/image without name');
      names.set(attachment, `${name} [temp]`);
    }
    return names;
  }

  /** Yields the events of a prompt until it has left the queue. Returns its failure, if any. */
  async *#follow(
    socket: UpstreamSocket,
    { prompt, steps, secrets }: Submitted,
    signal: AbortSignal,
  ): AsyncGenerator<CallEvent, UpstreamError | undefined, void> {
    // A prompt that fails leaves the queue after the message about it.
    let failure: UpstreamError | undefined;
    // Messages about other prompts do not postpone a poll.
    let pollAtMs = performance.now() + this.#pollMs;
    for (;;) {
      const raw = await socket.next(pollAtMs - performance.now());
      const message: ComfyMessage | undefined =
        raw === undefined ? await this.#poll(prompt, signal) : readComfyMessage(raw, prompt);
      if (raw === undefined || message !== undefined) pollAtMs = performance.now() + this.#pollMs;
      if (message === undefined) continue;
      if (message.type === 'done') return failure;
      if (message.type === 'failed') failure = unavailable(`broke off: ${safeReason(message.reason, secrets)}`);
      if (message.type === 'interrupted') failure = unavailable('interrupted the prompt for another client');
      yield steps.read(message);
    }
  }

  /** Finds a silent prompt in the queue. While it waits for others it is alive; while it runs, silence counts. */
  async #poll(prompt: string, signal: AbortSignal): Promise<ComfyMessage | undefined> {
    const { isWaiting, isRunning } = await this.#find(prompt, signal);
    if (isRunning) return undefined;
    return { type: isWaiting ? 'other' : 'done' };
  }

  async #find(prompt: string, signal: AbortSignal) {
    const options = { maxBytes: maxQueueBytes, missing: 'has no queue' };
    const queue = await this.#http.getState('/queue', signal, options);
    const has = (name: string): boolean =>
      listProperty(queue, name).some((entry) => Array.isArray(entry) && entry[1] === prompt);
    return { isWaiting: has('queue_pending'), isRunning: has('queue_running') };
  }

  async #download(prompt: string, signal: AbortSignal): Promise<Buffer> {
    const options = { maxBytes: maxMessageBytes, missing: promptMissing };
    const history = await this.#http.getState(`/history/${prompt}`, signal, options);
    const entry = fieldOf(history, prompt);
    if (entry === undefined) throw unavailable(promptMissing);
    const outputs = Object.entries((fieldOf(entry, 'outputs') ?? {}) as Record<string, unknown>);
    const images = outputs
      .filter(([node]) => node === (this.#workflow.output ?? node))
      .flatMap(([, output]) => listProperty(output, 'images'));
    // Files of nodes that only preview have the type `temp`.
    const image = images.find((each) => textProperty(each, 'type') === 'output') ?? images[0];
    const filename = textProperty(image, 'filename');
    if (filename === undefined) throw unavailable('has no image of the prompt in its history');
    const place = { subfolder: textProperty(image, 'subfolder') ?? '', type: textProperty(image, 'type') ?? 'output' };
    const query = new URLSearchParams({ filename, ...place }).toString();
    const missing = "no longer has the prompt's image: its file was deleted";
    return this.#http.getFile(`/view?${query}`, signal, { maxBytes: maxImageBytes, missing });
  }

  /** Deletes a prompt from the history: it contains what the client wrote. */
  #forget(prompt: string): Promise<void> {
    return this.#post('/history', { delete: [prompt] });
  }

  async #cancel(prompt: string): Promise<void> {
    await this.#post('/queue', { delete: [prompt] });
    // Versions before 2025 interrupt any prompt, so interrupt only if this one runs.
    const { isRunning } = await this.#find(prompt, AbortSignal.timeout(cancelTimeoutMs));
    if (isRunning) await this.#post('/interrupt', { prompt_id: prompt });
  }

  async #post(path: string, body: object): Promise<void> {
    const signal = AbortSignal.timeout(cancelTimeoutMs);
    (await this.#http.post(path, body, { signal, secrets: [] })).endSoon();
  }

  /** Returns the error of a rejected prompt: the request's fault only if a value of the request is at fault. */
  #rejection(answer: unknown, secrets: readonly string[]): UpstreamError {
    const problems = Object.entries((fieldOf(answer, 'node_errors') ?? {}) as Record<string, unknown>).flatMap(
      ([node, errors]) =>
        listProperty(errors, 'errors').map((error) => ({
          node,
          input: textProperty(fieldOf(error, 'extra_info'), 'input_name') ?? '',
          reason: [textProperty(error, 'message'), textProperty(error, 'details')].filter(Boolean).join(': '),
        })),
    );
    const ofWorkflow = problems.find(({ node, input }) => !this.#workflow.isFromRequest(node, input));
    const { node, input, reason } = ofWorkflow ?? problems[0] ?? { node: '', input: '', reason: '' };
    const shown = safeReason(reason, secrets);
    if (problems.length > 0 && ofWorkflow === undefined) return new UpstreamError('invalid_request', shown);
    const general = textProperty(fieldOf(answer, 'error'), 'message') ?? 'no reason';
    return new UpstreamError(
      'model_unsupported',
      `rejects the workflow: ${node === '' ? safeReason(general, secrets) : `${node}.${input}: ${shown}`}`,
    );
  }
}

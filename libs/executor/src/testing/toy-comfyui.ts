/**
 * Fake ComfyUI, following its server's routes: validates workflows against the inputs of its nodes, and runs one prompt
 * at a time.
 */
import { randomUUID } from 'node:crypto';
import type { Server, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { type WebSocket, WebSocketServer } from 'ws';
import { toyPng } from './toy-png.ts';
import { ToyServer } from './toy-server.ts';
import { type ToyGraph, toyNodeInfo, toyNodeTypes, validateToyGraph } from './toy-comfy-nodes.ts';

interface ToyPrompt {
  id: string;
  client: string;
  graph: ToyGraph;
  isInterrupted: boolean;
}

/** A file that the server stores. */
interface ToyFile {
  name: string;
  type: string;
  data: Uint8Array;
}

/** The prompt of an image that is drawn until it is interrupted. */
const endless = 'forever';
/** Fields of a submission. */
const promptFields = ['client_id', 'prompt', 'prompt_id'];

export class ToyComfyui extends ToyServer {
  readonly #sockets = new Map<string, WebSocket>();
  readonly files: ToyFile[] = [];
  readonly history = new Map<string, object>();
  /** Prompts that wait, without the one that runs. */
  readonly waiting: ToyPrompt[] = [];
  running: ToyPrompt | undefined;
  /** Ids of prompts whose image is complete. */
  readonly drawn: string[] = [];
  readonly interrupted: string[] = [];
  /** Runs before each step of a prompt; may send messages, or end the connection. */
  onStep: (prompt: { id: string; socket: WebSocket | undefined }) => void | Promise<void> = () => {};

  override stop(): Promise<unknown> {
    for (const socket of this.#sockets.values()) socket.terminate();
    this.waiting.length = 0;
    if (this.running !== undefined) this.running.isInterrupted = true;
    return super.stop();
  }

  protected override prepare(server: Server): void {
    const sockets = new WebSocketServer({ server, path: '/ws' });
    sockets.on('connection', (socket, { url = '', headers }) => {
      const client = new URL(url, 'http://toy').searchParams.get('clientId') ?? randomUUID();
      this.keys.add(headers.authorization);
      this.#sockets.set(client, socket);
      socket.once('close', () => this.#sockets.delete(client));
      socket.send(JSON.stringify({ type: 'status', data: { status: { exec_info: this.#info() }, sid: client } }));
    });
  }

  protected override answer(path: string, body: Record<string, unknown> | undefined, response: ServerResponse) {
    const [route = '', search = ''] = path.split('?');
    if (body !== undefined) return this.#post(route, body, response);
    const [, first, second = ''] = route.split('/');
    if (route === '/prompt') return this.sendJson(response, { exec_info: this.#info() });
    if (first === 'object_info') return this.sendJson(response, toyNodeInfo(decodeURIComponent(second)));
    if (first === 'history') {
      const entry = this.history.get(second);
      return this.sendJson(response, entry === undefined ? {} : { [second]: entry });
    }
    if (route === '/queue') {
      const listed = (prompt: ToyPrompt) => [0, prompt.id, prompt.graph, { client_id: prompt.client }, ['9']];
      const running = this.running === undefined ? [] : [listed(this.running)];
      return this.sendJson(response, { queue_running: running, queue_pending: this.waiting.map(listed) });
    }
    const query = new URLSearchParams(search);
    const file = this.files.find(({ name, type }) => name === query.get('filename') && type === query.get('type'));
    if (route === '/view' && file !== undefined) return response.end(file.data);
    return response.writeHead(404).end('404: Not Found');
  }

  #info(): object {
    return { queue_remaining: this.waiting.length + (this.running === undefined ? 0 : 1) };
  }

  async #post(route: string, body: Record<string, unknown>, response: ServerResponse) {
    if (route === '/prompt') return this.#submit(body, response);
    if (route === '/upload/image') return this.#upload(body, response);
    if (route === '/interrupt' && this.running?.id === body['prompt_id']) this.running!.isInterrupted = true;
    const deleted = (body['delete'] ?? []) as string[];
    if (route === '/history') for (const id of deleted) this.history.delete(id);
    if (route === '/queue') {
      const rest = this.waiting.filter(({ id }) => !deleted.includes(id));
      this.waiting.splice(0, this.waiting.length, ...rest);
    }
    return response.writeHead(['/interrupt', '/history', '/queue'].includes(route) ? 200 : 404).end();
  }

  async #upload(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const { image, type, ...rest } = body;
    if (!(image instanceof File) || Object.keys(rest).length > 0) return void response.writeHead(400).end();
    const file = { name: image.name, type: type as string, data: new Uint8Array(await image.arrayBuffer()) };
    this.files.push(file);
    this.sendJson(response, { name: file.name, subfolder: '', type });
  }

  #submit(body: Record<string, unknown>, response: ServerResponse): void {
    const graph = body['prompt'] as ToyGraph;
    const client = body['client_id'] as string;
    const unknown = Object.keys(body).find((name) => !promptFields.includes(name));
    const nodeErrors = validateToyGraph(graph, this.files);
    if (Object.keys(nodeErrors).length > 0 || unknown !== undefined || !this.#sockets.has(client)) {
      const error = { type: 'prompt_outputs_failed_validation', message: 'Prompt outputs failed validation' };
      return this.sendJson(response, { error, node_errors: nodeErrors }, 400);
    }
    const id = body['prompt_id'] as string;
    this.waiting.push({ id, client, graph, isInterrupted: false });
    this.sendJson(response, { prompt_id: id, number: 1, node_errors: {} });
    if (this.running === undefined) void this.#work();
  }

  async #work(): Promise<void> {
    for (let prompt = this.waiting.shift(); prompt !== undefined; prompt = this.waiting.shift()) {
      this.running = prompt;
      await this.#execute(prompt);
      this.running = undefined;
      this.#send(prompt, 'executing', { node: null });
    }
  }

  async #execute(prompt: ToyPrompt): Promise<void> {
    const { id, graph } = prompt;
    const nodes = Object.entries(graph);
    const [sampler, node] = nodes.find(([, { class_type }]) => class_type === toyNodeTypes.sampler)!;
    const { steps } = node.inputs as { steps: number };
    const texts = nodes.flatMap(([, { inputs }]) => (typeof inputs['text'] === 'string' ? [inputs['text']] : []));
    this.#send(prompt, 'execution_start', {});
    this.#send(prompt, 'executing', { node: sampler });
    for (let step = 1; step <= steps; step = step === steps && texts.includes(endless) ? step : step + 1) {
      await this.onStep({ id, socket: this.#sockets.get(prompt.client) });
      await setImmediate();
      if (prompt.isInterrupted) {
        this.interrupted.push(id);
        this.history.set(id, { prompt: [0, id, graph], outputs: {}, status: { status_str: 'error' } });
        return this.#send(prompt, 'execution_interrupted', { node_id: sampler });
      }
      if (texts.some((text) => text.includes('boom'))) {
        const exception_message = `boom of ${texts[0]}`;
        this.history.set(id, { prompt: [0, id, graph], outputs: {}, status: { status_str: 'error' } });
        return this.#send(prompt, 'execution_error', { node_id: sampler, exception_message });
      }
      this.#send(prompt, 'progress', { node: sampler, value: step, max: steps });
      this.#sockets.get(prompt.client)?.send(Buffer.concat([Buffer.of(0, 0, 0, 1, 0, 0, 0, 2), await toyPng('view')]));
    }
    const name = `${id}.png`;
    const type = nodes.some(([, { class_type }]) => class_type === toyNodeTypes.save) ? 'output' : 'temp';
    this.files.push({ name, type, data: await toyPng(JSON.stringify(graph)) });
    const outputs = { '9': { images: [{ filename: name, subfolder: '', type }] } };
    this.history.set(id, { prompt: [0, id, graph], outputs, status: { status_str: 'success', completed: true } });
    this.drawn.push(id);
    this.#send(prompt, 'execution_success', {});
  }

  #send({ id, client }: ToyPrompt, type: string, data: object): void {
    this.#sockets.get(client)?.send(JSON.stringify({ type, data: { ...data, prompt_id: id } }));
  }
}

/** Fake OpenAI server, following its API reference: texts, and images with partial images. */
import type { ServerResponse } from 'node:http';
import { ToyServer, writeByBytes } from './toy-server.ts';

interface ToyBody {
  prompt?: string;
  messages?: { content: string }[];
  max_tokens?: number;
  seed: number;
  logprobs?: unknown;
}

interface ToyImageBody {
  prompt: string;
  size: string;
  stream?: boolean;
  partial_images?: number;
}

export class ToyOpenai extends ToyServer {
  models: object[] = [
    { id: 'Toys/Toy_Writer', object: 'model', created: 7, owned_by: 'toys', max_model_len: 512 },
    { id: 'gpt-image-toy', object: 'model', created: 8, owned_by: 'toys' },
  ];

  /** Its OpenAPI document, as servers with FastAPI have one. */
  document: object | undefined;
  /** Fields of image requests that it rejects as unknown. */
  rejectedFields: readonly string[] = [];

  protected override async answer(path: string, body: Record<string, unknown> | undefined, response: ServerResponse) {
    if (path === '/v1/models') return this.sendJson(response, { object: 'list', data: this.models });
    if (path === '/openapi.json' && this.document !== undefined) return this.sendJson(response, this.document);
    if (body === undefined) return this.sendJson(response, { error: { message: 'Not Found' } }, 404);
    if (path === '/v1/images/generations' || path === '/v1/images/edits') return this.#draw(body, response);
    if (path === '/v1/chat/completions' || path === '/v1/completions') return this.#write(path, body, response);
    return this.sendJson(response, { error: { message: 'Not Found' } }, 404);
  }

  async #write(path: string, body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const { prompt, messages = [], max_tokens: max, seed, logprobs } = body as unknown as ToyBody;
    const promptText = prompt ?? messages.map(({ content }) => content).join(' ');
    if (promptText.includes('too long')) {
      const message = 'This model takes 512 tokens at most.';
      return this.sendJson(
        response,
        { error: { message, type: 'invalid_request_error', code: 'context_length_exceeded' } },
        400,
      );
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const isChat = path === '/v1/chat/completions';
    const sendChunk = (choices: object[], more: object = {}) =>
      writeByBytes(response, `data: ${JSON.stringify({ id: 'x', choices, usage: null, ...more })}\r\n\r\n`);
    if (isChat) sendChunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
    let count = 0;
    for await (const word of this.words(response, { prompt: promptText, seed, max: max ?? Infinity })) {
      count += 1;
      const token = { token: word, logprob: -0.5, bytes: [...Buffer.from(word)] };
      const ofChat = { content: [{ ...token, top_logprobs: [token] }] };
      const ofText = { tokens: [word], token_logprobs: [-0.5], top_logprobs: [{ [word]: -0.5 }], text_offset: [0] };
      const wordLogprobs = logprobs === undefined ? null : isChat ? ofChat : ofText;
      sendChunk([
        {
          index: 0,
          ...(isChat ? { delta: { content: word } } : { text: word }),
          logprobs: wordLogprobs,
          finish_reason: null,
        },
      ]);
    }
    sendChunk([{ index: 0, ...(isChat ? { delta: {} } : { text: '' }), logprobs: null, finish_reason: 'length' }]);
    sendChunk([], {
      usage: { prompt_tokens: 7, completion_tokens: count, prompt_tokens_details: { cached_tokens: 3 } },
    });
    response.end('data: [DONE]\n\n');
  }

  async #draw(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const { prompt, size, stream, partial_images: views = 0 } = body as unknown as ToyImageBody;
    if (prompt.includes('too long'))
      return this.sendJson(response, { error: { message: 'It takes no such thing.' } }, 400);
    const rejected = this.rejectedFields.find((name) => name in body);
    if (rejected !== undefined) {
      const detail = [{ type: 'extra_forbidden', loc: ['body', rejected], msg: 'Extra inputs are not permitted' }];
      return this.sendJson(response, { detail }, 422);
    }
    const b64_json = Buffer.from(`\x89PNG\r\n\x1a\n ${prompt} ${size}`, 'latin1').toString('base64');
    if (stream !== true) return this.sendJson(response, { created: 1, data: [{ b64_json }] });
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const sendChunk = (type: string, more: object) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, b64_json, ...more })}\n\n`);
    for (let view = 0; view < views; view++) sendChunk('image_generation.partial_image', { partial_image_index: view });
    // A large image never completes on its own.
    for await (const _ of this.words(response, { prompt, seed: 0, max: size === '4096x4096' ? Infinity : 0 }))
      response.write(': still drawing\n\n');
    sendChunk('image_generation.completed', { usage: {} });
    response.end();
  }
}

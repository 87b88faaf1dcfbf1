/** A toy that speaks as OpenAI's API reference has it: texts, and pictures with views of them in the making. */
import type { ServerResponse } from 'node:http';
import { ToyServer, writeByBytes } from './toy-server.ts';

interface ToyAsk {
  prompt?: string;
  messages?: { content: string }[];
  max_tokens?: number;
  seed: number;
  logprobs?: unknown;
}

interface ToyPictureAsk {
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

  protected override async answer(path: string, body: Record<string, unknown> | undefined, response: ServerResponse) {
    if (path === '/v1/models') return this.say(response, { object: 'list', data: this.models });
    if (body === undefined) return this.say(response, { error: { message: 'Not Found' } }, 404);
    if (path === '/v1/images/generations') return this.#draw(body, response);
    if (path === '/v1/chat/completions' || path === '/v1/completions') return this.#write(path, body, response);
    return this.say(response, { error: { message: 'Not Found' } }, 404);
  }

  async #write(path: string, body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const { prompt, messages = [], max_tokens: most, seed, logprobs } = body as unknown as ToyAsk;
    const asked = prompt ?? messages.map(({ content }) => content).join(' ');
    if (asked.includes('too long')) {
      const message = 'This model takes 512 tokens at most.';
      return this.say(
        response,
        { error: { message, type: 'invalid_request_error', code: 'context_length_exceeded' } },
        400,
      );
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const isChat = path === '/v1/chat/completions';
    const say = (choices: object[], more: object = {}) =>
      writeByBytes(response, `data: ${JSON.stringify({ id: 'x', choices, usage: null, ...more })}\r\n\r\n`);
    if (isChat) say([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]);
    let count = 0;
    for await (const word of this.words(response, { prompt: asked, seed, most: most ?? Infinity })) {
      count += 1;
      const token = { token: word, logprob: -0.5, bytes: [...Buffer.from(word)] };
      const ofChat = { content: [{ ...token, top_logprobs: [token] }] };
      const ofText = { tokens: [word], token_logprobs: [-0.5], top_logprobs: [{ [word]: -0.5 }], text_offset: [0] };
      const said = logprobs === undefined ? null : isChat ? ofChat : ofText;
      say([
        { index: 0, ...(isChat ? { delta: { content: word } } : { text: word }), logprobs: said, finish_reason: null },
      ]);
    }
    say([{ index: 0, ...(isChat ? { delta: {} } : { text: '' }), logprobs: null, finish_reason: 'length' }]);
    say([], { usage: { prompt_tokens: 7, completion_tokens: count, prompt_tokens_details: { cached_tokens: 3 } } });
    response.end('data: [DONE]\n\n');
  }

  async #draw(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const { prompt, size, stream, partial_images: views = 0 } = body as unknown as ToyPictureAsk;
    if (prompt.includes('too long')) return this.say(response, { error: { message: 'It takes no such thing.' } }, 400);
    const b64_json = Buffer.from(`\x89PNG ${prompt} ${size}`, 'latin1').toString('base64');
    if (stream !== true) return this.say(response, { created: 1, data: [{ b64_json }] });
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const say = (type: string, more: object) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, b64_json, ...more })}\n\n`);
    for (let view = 0; view < views; view++) say('image_generation.partial_image', { partial_image_index: view });
    // A large one takes its time.
    for await (const _ of this.words(response, { prompt, seed: 0, most: size === '4096x4096' ? Infinity : 0 }))
      response.write(': still drawing\n\n');
    say('image_generation.completed', { usage: {} });
    response.end();
  }
}

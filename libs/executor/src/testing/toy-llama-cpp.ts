/** Fake llama.cpp server, following its README. */
import type { ServerResponse } from 'node:http';
import { ToyServer } from './toy-server.ts';

interface ToyBody {
  prompt: string;
  n_predict?: number;
  seed: number;
  n_probs?: number;
}

export class ToyLlamaCpp extends ToyServer {
  isLoading = false;
  slots = 2;
  /** With an mmproj file, `vision` is true; older versions report none. */
  modalities: object | undefined;
  template =
    '{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}';

  protected override async answer(path: string, body: Record<string, unknown> | undefined, response: ServerResponse) {
    if (this.isLoading)
      return this.sendJson(
        response,
        { error: { code: 503, message: 'Loading model', type: 'unavailable_error' } },
        503,
      );
    if (path === '/health') return this.sendJson(response, { status: 'ok' });
    if (path === '/props') return this.sendJson(response, this.#props());
    if (path !== '/completion' || body === undefined)
      return this.sendJson(response, { error: { message: 'File Not Found' } }, 404);
    await this.#complete(body, response);
  }

  #props(): object {
    return {
      default_generation_settings: { n_ctx: 512, params: {} },
      total_slots: this.slots,
      model_path: '/models/toy.gguf',
      bos_token: '<s>',
      eos_token: '</s>',
      chat_template: this.template,
      modalities: this.modalities,
    };
  }

  async #complete(body: Record<string, unknown>, response: ServerResponse): Promise<void> {
    const { prompt, n_predict: max, seed, n_probs: probs = 0 } = body as unknown as ToyBody;
    if (prompt.includes('too long')) {
      const error = {
        code: 400,
        message: 'the request exceeds the available context size',
        type: 'exceed_context_size_error',
      };
      return this.sendJson(response, { error }, 400);
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const sendChunk = (chunk: object) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    let count = 0;
    for await (const content of this.words(response, { prompt, seed, max: max ?? Infinity })) {
      count += 1;
      const top_logprobs = [{ id: 1, token: content, bytes: [...Buffer.from(content)], logprob: -0.5 }];
      const completion_probabilities = [{ ...top_logprobs[0], top_logprobs }];
      if (count % 3 === 1) response.write(': ping\n\n');
      sendChunk({
        index: 0,
        content,
        tokens: [count],
        stop: false,
        tokens_predicted: count,
        ...(probs > 0 && { completion_probabilities }),
      });
    }
    const timings = { cache_n: 3, prompt_n: 4, predicted_n: count };
    sendChunk({
      index: 0,
      content: '',
      tokens: [],
      stop: true,
      stop_type: 'limit',
      stopping_word: '',
      tokens_predicted: count,
      tokens_evaluated: 7,
      timings,
    });
    response.end();
  }
}

/** A toy without steps: it forwards whole requests to a server, and says what comes back. */
import { DarkroomError, type ModelCard, type RowRequest } from '@darkroom/core';
import type { ExecutorEvent, ExecutorListener } from '../executor-event.ts';
import type { Executor, ExecutorHealth } from '../executor.ts';
import type { ToyLine, ToyPrompt } from './toy-upstream.ts';

/** What it takes: a prompt, and how many answers to it. */
export interface ForwardedInput extends ToyPrompt {
  outputs: number;
}

export class ForwardingExecutor implements Executor {
  readonly #url: string;
  readonly #maxSlots: number;
  readonly #onEvents: ExecutorListener;
  #isStarted = false;
  #line: RowRequest[] = [];
  readonly #forwarded = new Map<string, AbortController>();

  constructor({ url, maxSlots, onEvents }: { url: string; maxSlots: number; onEvents: ExecutorListener }) {
    this.#url = url;
    this.#maxSlots = maxSlots;
    this.#onEvents = onEvents;
  }

  async start(): Promise<ModelCard> {
    if (this.#isStarted) throw toyError('unavailable', 'is running');
    const response = await fetch(`${this.#url}/model`);
    this.#isStarted = true;
    return (await response.json()) as ModelCard;
  }

  submit(requests: readonly RowRequest[]): void {
    if (!this.#isStarted) throw toyError('unavailable', 'is not running');
    for (const request of requests) if (!this.#has(request.id)) this.#line.push(request);
    this.#forwardNext();
  }

  cancel(requestId: string): void {
    if (!this.#has(requestId)) return;
    this.#end({ type: 'request-canceled', requestId });
  }

  kill(): void {
    if (!this.#isStarted) return;
    const requestIds = this.#drop();
    this.#onEvents([{ type: 'engine-lost', message: 'was killed', requestIds }]);
  }

  checkHealth(): Promise<ExecutorHealth> {
    const { size: slots } = this.#forwarded;
    return Promise.resolve({
      isHealthy: this.#isStarted,
      slots,
      waitingRequests: this.#line.length,
      latencyMs: 0,
    });
  }

  shutdown(): Promise<void> {
    this.#drop();
    return Promise.resolve();
  }

  #has(requestId: string): boolean {
    return this.#forwarded.has(requestId) || this.#line.some(({ id }) => id === requestId);
  }

  #drop(): string[] {
    const requestIds = [...this.#forwarded.keys(), ...this.#line.map(({ id }) => id)];
    for (const controller of this.#forwarded.values()) controller.abort();
    this.#forwarded.clear();
    this.#line = [];
    this.#isStarted = false;
    return requestIds;
  }

  #forwardNext(): void {
    while (this.#forwarded.size < this.#maxSlots && this.#line.length > 0) void this.#forward(this.#line.shift()!);
  }

  async #forward({ id: requestId, input, indexes }: RowRequest): Promise<void> {
    const controller = new AbortController();
    const { signal } = controller;
    this.#forwarded.set(requestId, controller);
    const { outputs, ...prompt } = input as ForwardedInput;
    try {
      for (const index of indexes ?? Array.from({ length: outputs }, (_, at) => at)) {
        let text = '';
        for await (const word of this.#ask({ ...prompt, prompt: prompt.prompt.slice(index) }, signal)) {
          if (signal.aborted) return;
          this.#onEvents([{ type: 'delta', requestId, index, offset: text.length, text: word }]);
          text += word;
        }
        if (signal.aborted) return;
        const output = { data: new TextEncoder().encode(text), facts: {} };
        this.#onEvents([{ type: 'output', requestId, index, output }]);
      }
      this.#end({ type: 'request-done', requestId });
    } catch (error) {
      if (signal.aborted) return;
      const { code, message } = error as DarkroomError;
      this.#end({ type: 'request-failed', requestId, code, message });
    }
  }

  async *#ask(prompt: ToyPrompt, signal: AbortSignal): AsyncGenerator<string> {
    const response = await fetch(this.#url, { method: 'POST', body: JSON.stringify(prompt), signal });
    if (!response.ok) throw toyError('invalid_request', ((await response.json()) as { message: string }).message);
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of response.body!) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop()!;
      for (const text of lines) {
        const line = JSON.parse(text) as ToyLine;
        if ('stop' in line) return;
        yield line.word;
      }
    }
    throw toyError('engine_failed', 'the server broke off');
  }

  #end(event: Extract<ExecutorEvent, { type: `request-${string}` }>): void {
    const { requestId } = event;
    this.#forwarded.get(requestId)?.abort();
    this.#forwarded.delete(requestId);
    this.#line = this.#line.filter(({ id }) => id !== requestId);
    this.#onEvents([event]);
    this.#forwardNext();
  }
}

function toyError(code: 'unavailable' | 'invalid_request' | 'engine_failed', message: string): DarkroomError {
  return new DarkroomError(code, 'test', message);
}

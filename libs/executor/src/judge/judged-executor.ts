import { DarkroomError, type ModelCard, type RowRequest } from '@darkroom/core';
import { imageKind, type ImageInput } from '@darkroom/kinds';
import { type EventOf, type ExecutorEvent, type ExecutorListener, isRequestEnd } from '../executor-event.ts';
import { callMethod } from '../executor.ts';
import type { Executor, ExecutorHealth, ShutdownOptions } from '../executor.ts';
import { Judge, type JudgeOptions } from './judge.ts';

export interface JudgedExecutorOptions extends JudgeOptions {
  /** Creates the executor that computes the images. */
  createExecutor: (listener: ExecutorListener) => Executor;
  onEvents: ExecutorListener;
}

/** A request whose end has not been emitted yet. */
interface OpenRequest {
  readonly request: RowRequest;
  /** Set once the prompt has passed and the inner executor has the request. */
  isSubmitted: boolean;
  /** Number of images that wait for a verdict. */
  pendingVerdicts: number;
  /** Set if the inner executor has emitted request-done; passed on once all images have a verdict. */
  isDone: boolean;
}

type RequestScopedEvent = Exclude<ExecutorEvent, { type: 'stats' | 'engine-lost' }>;

/**
 * Moderates the prompts and images of another executor's image requests. A rejected request fails with the reason;
 * one without a verdict fails too. Other requests continue.
 */
export class JudgedExecutor implements Executor {
  readonly #inner: Executor;
  readonly #judge: Judge;
  readonly #onEvents: ExecutorListener;
  readonly #open = new Map<string, OpenRequest>();
  #servesImages = false;

  constructor({ createExecutor, onEvents, ...judge }: JudgedExecutorOptions) {
    this.#judge = new Judge(judge);
    this.#onEvents = onEvents;
    this.#inner = createExecutor((events) => this.#handle(events));
  }

  get maxSlots(): number | undefined {
    return this.#inner.maxSlots;
  }

  get enginePid(): number | undefined {
    return this.#inner.enginePid;
  }

  async start(): Promise<ModelCard> {
    const card = await this.#inner.start();
    this.#servesImages = card.kind === imageKind.id;
    try {
      if (this.#servesImages) await this.#judge.start();
      return card;
    } catch (error) {
      await this.#inner.shutdown();
      throw error;
    }
  }

  submit(requests: readonly RowRequest[]): void {
    if (!this.#servesImages) return this.#inner.submit(requests);
    // Throws synchronously if the inner executor is not running.
    this.#inner.submit([]);
    for (const request of requests) {
      if (this.#open.has(request.id)) continue;
      const open: OpenRequest = { request, isSubmitted: false, pendingVerdicts: 0, isDone: false };
      this.#open.set(request.id, open);
      if (this.#judge.judges('prompt')) void this.#judgePrompt(open);
      else this.#pass(open);
    }
  }

  cancel(requestId: string): void {
    const open = this.#open.get(requestId);
    this.#inner.cancel(requestId);
    // The inner executor emits nothing for a request that it does not have or has finished.
    if (open !== undefined && (!open.isSubmitted || open.isDone)) this.#end({ type: 'request-canceled', requestId });
  }

  kill(): void {
    this.#inner.kill();
  }

  checkHealth(): Promise<ExecutorHealth> {
    return this.#inner.checkHealth();
  }

  rpc(method: string, parameters: Readonly<Record<string, unknown>>): Promise<unknown> {
    return callMethod(this.#inner, method, parameters);
  }

  async shutdown(options?: ShutdownOptions): Promise<void> {
    for (const open of this.#open.values()) if (!open.isSubmitted) this.#open.delete(open.request.id);
    await this.#inner.shutdown(options);
    this.#open.clear();
    this.#judge.stop();
  }

  async #judgePrompt(open: OpenRequest): Promise<void> {
    const { id, input } = open.request;
    try {
      const { prompt, negativePrompt } = input as ImageInput;
      const { reason } = await this.#judge.judge({ type: 'prompt', subject: { prompt, negativePrompt } });
      if (!this.#isOpen(open)) return;
      if (reason === undefined) this.#pass(open);
      else this.#fail(id, refused(`the prompt is refused here: ${reason}`));
    } catch (error) {
      if (this.#isOpen(open)) this.#fail(id, error);
    }
  }

  #pass(open: OpenRequest): void {
    open.isSubmitted = true;
    this.#inner.submit([open.request]);
  }

  #handle(events: readonly ExecutorEvent[]): void {
    if (!this.#servesImages) return this.#onEvents(events);
    const passed = events.flatMap((event) => {
      if (event.type === 'stats') return event;
      return event.type === 'engine-lost' ? this.#lose(event) : this.#filter(event);
    });
    // Pass on an empty batch: it is a liveness signal.
    if (passed.length > 0 || events.length === 0) this.#onEvents(passed);
  }

  /** Returns the events that may be passed on at once. */
  #filter(event: RequestScopedEvent): ExecutorEvent[] {
    const open = this.#open.get(event.requestId);
    if (open === undefined) return [];
    const judgesImages = this.#judge.judges('image');
    if (event.type === 'output' && judgesImages) {
      open.pendingVerdicts += 1;
      void this.#judgeImage(open, event);
      return [];
    }
    if (event.type === 'progress' && judgesImages) {
      // Drop the preview: it would show an unmoderated image.
      const { preview: _preview, ...progress } = event;
      return [progress];
    }
    if (event.type === 'request-done' && open.pendingVerdicts > 0) {
      open.isDone = true;
      return [];
    }
    if (isRequestEnd(event)) this.#open.delete(event.requestId);
    return [event];
  }

  async #judgeImage(open: OpenRequest, event: EventOf<'output'>): Promise<void> {
    const { requestId, index } = event;
    try {
      const { reason } = await this.#judge.judge({ type: 'image', subject: subjectOf(open.request, event) });
      if (!this.#isOpen(open)) return;
      if (reason !== undefined) throw refused(`image ${index} is refused here: ${reason}`);
      open.pendingVerdicts -= 1;
      this.#onEvents([event]);
      if (open.isDone && open.pendingVerdicts === 0) this.#end({ type: 'request-done', requestId });
    } catch (error) {
      if (!this.#isOpen(open)) return;
      // End the request first, so that the inner executor's request-canceled event is ignored.
      this.#fail(requestId, error);
      this.#inner.cancel(requestId);
    }
  }

  /** Adds the requests that wait for a verdict to the lost ones. */
  #lose(event: EventOf<'engine-lost'>): ExecutorEvent {
    const requestIds = [...this.#open.keys()];
    this.#open.clear();
    return { ...event, requestIds };
  }

  #isOpen(open: OpenRequest): boolean {
    return this.#open.get(open.request.id) === open;
  }

  #fail(requestId: string, error: unknown): void {
    const isOurs = DarkroomError.isInstance(error);
    const { code, message } = isOurs
      ? error
      : { code: 'internal' as const, message: 'the request could not be moderated' };
    const reason = isOurs ? error.cause : error;
    const cause = reason instanceof Error ? { cause: reason.message } : {};
    this.#end({ type: 'request-failed', requestId, code, message, ...cause });
  }

  #end(event: Extract<ExecutorEvent, { requestId: string }> & { type: `request-${string}` }): void {
    if (this.#open.delete(event.requestId)) this.#onEvents([event]);
  }
}

function subjectOf({ input }: RowRequest, { index, output }: EventOf<'output'>) {
  const { prompt, negativePrompt } = input as ImageInput;
  const { data, contentType, facts } = output;
  const { width, height } = input as ImageInput;
  const size = { width: Number(facts['width'] ?? width), height: Number(facts['height'] ?? height) };
  return { prompt, negativePrompt, index, ...size, data, ...(contentType !== undefined && { contentType }) };
}

function refused(message: string): DarkroomError {
  return new DarkroomError('content_policy_violation', 'executor.judge', message);
}

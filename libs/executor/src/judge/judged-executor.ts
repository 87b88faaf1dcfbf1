import { DarkroomError, type ModelCard, type RowRequest } from '@darkroom/core';
import { picture, type PictureInput } from '@darkroom/kinds';
import { type EventOf, type ExecutorEvent, type ExecutorListener, isRequestEnd } from '../executor-event.ts';
import type { Executor, ExecutorHealth, ShutdownOptions } from '../executor.ts';
import { Judge, type JudgeOptions } from './judge.ts';

export interface JudgedExecutorOptions extends JudgeOptions {
  /** Whoever draws. */
  createExecutor: (listener: ExecutorListener) => Executor;
  onEvents: ExecutorListener;
}

/** A request that has not ended, as far as anybody has been told. */
interface OpenRequest {
  readonly request: RowRequest;
  /** Its prompt may pass: the executor has it. */
  isSubmitted: boolean;
  /** Pictures that wait for a verdict. */
  judging: number;
  /** The executor has said that it is done; told when all pictures are judged. */
  isDone: boolean;
}

type OfRequest = Exclude<ExecutorEvent, { type: 'stats' | 'engine-lost' }>;

/**
 * Has a module judge what another executor is asked, and what it draws, before either passes: requests of pictures, and no others.
 * What is refused fails with the reason. Without a verdict it fails too, and others go on.
 */
export class JudgedExecutor implements Executor {
  readonly #inner: Executor;
  readonly #judge: Judge;
  readonly #onEvents: ExecutorListener;
  readonly #open = new Map<string, OpenRequest>();
  #isOfPictures = false;

  constructor({ createExecutor, onEvents, ...judge }: JudgedExecutorOptions) {
    this.#judge = new Judge(judge);
    this.#onEvents = onEvents;
    this.#inner = createExecutor((events) => this.#hear(events));
  }

  get maxSlots(): number | undefined {
    return this.#inner.maxSlots;
  }

  get enginePid(): number | undefined {
    return this.#inner.enginePid;
  }

  async start(): Promise<ModelCard> {
    const card = await this.#inner.start();
    this.#isOfPictures = card.kind === picture.id;
    try {
      if (this.#isOfPictures) await this.#judge.start();
      return card;
    } catch (error) {
      await this.#inner.shutdown();
      throw error;
    }
  }

  submit(requests: readonly RowRequest[]): void {
    if (!this.#isOfPictures) return this.#inner.submit(requests);
    // Throws where it would.
    this.#inner.submit([]);
    for (const request of requests) {
      if (this.#open.has(request.id)) continue;
      const open: OpenRequest = { request, isSubmitted: false, judging: 0, isDone: false };
      this.#open.set(request.id, open);
      if (this.#judge.judges('prompt')) void this.#judgePrompt(open);
      else this.#pass(open);
    }
  }

  cancel(requestId: string): void {
    const open = this.#open.get(requestId);
    this.#inner.cancel(requestId);
    // Of what it does not have, or has ended, the executor says nothing.
    if (open !== undefined && (!open.isSubmitted || open.isDone)) this.#end({ type: 'request-canceled', requestId });
  }

  kill(): void {
    this.#inner.kill();
  }

  checkHealth(): Promise<ExecutorHealth> {
    return this.#inner.checkHealth();
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
      const { prompt, negativePrompt } = input as PictureInput;
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

  #hear(events: readonly ExecutorEvent[]): void {
    if (!this.#isOfPictures) return this.#onEvents(events);
    const passed = events.flatMap((event) => {
      if (event.type === 'stats') return event;
      return event.type === 'engine-lost' ? this.#lose(event) : this.#filter(event);
    });
    // That it is at it is said without events, too.
    if (passed.length > 0 || events.length === 0) this.#onEvents(passed);
  }

  /** What passes at once. */
  #filter(event: OfRequest): ExecutorEvent[] {
    const open = this.#open.get(event.requestId);
    if (open === undefined) return [];
    const judgesPictures = this.#judge.judges('picture');
    if (event.type === 'output' && judgesPictures) {
      open.judging += 1;
      void this.#judgePicture(open, event);
      return [];
    }
    if (event.type === 'progress' && judgesPictures) {
      // A preview would show what nobody has judged yet.
      const { preview: _preview, ...progress } = event;
      return [progress];
    }
    if (event.type === 'request-done' && open.judging > 0) {
      open.isDone = true;
      return [];
    }
    if (isRequestEnd(event)) this.#open.delete(event.requestId);
    return [event];
  }

  async #judgePicture(open: OpenRequest, event: EventOf<'output'>): Promise<void> {
    const { requestId, index } = event;
    try {
      const { reason } = await this.#judge.judge({ type: 'picture', subject: subjectOf(open.request, event) });
      if (!this.#isOpen(open)) return;
      if (reason !== undefined) throw refused(`picture ${index} is refused here: ${reason}`);
      open.judging -= 1;
      this.#onEvents([event]);
      if (open.isDone && open.judging === 0) this.#end({ type: 'request-done', requestId });
    } catch (error) {
      if (!this.#isOpen(open)) return;
      // What the executor says to the cancel is of nobody then.
      this.#fail(requestId, error);
      this.#inner.cancel(requestId);
    }
  }

  /** With the engine goes what waits for a verdict. */
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
      : { code: 'internal' as const, message: 'the request could not be judged' };
    const reason = isOurs ? error.cause : error;
    const cause = reason instanceof Error ? { cause: reason.message } : {};
    this.#end({ type: 'request-failed', requestId, code, message, ...cause });
  }

  #end(event: Extract<ExecutorEvent, { requestId: string }> & { type: `request-${string}` }): void {
    if (this.#open.delete(event.requestId)) this.#onEvents([event]);
  }
}

function subjectOf({ input }: RowRequest, { index, output }: EventOf<'output'>) {
  const { prompt, negativePrompt } = input as PictureInput;
  const { data, contentType, facts } = output;
  const { width, height } = input as PictureInput;
  const size = { width: Number(facts['width'] ?? width), height: Number(facts['height'] ?? height) };
  return { prompt, negativePrompt, index, ...size, data, ...(contentType !== undefined && { contentType }) };
}

function refused(message: string): DarkroomError {
  return new DarkroomError('content_policy_violation', 'executor.judge', message);
}

import { ClientError, drawIdempotencyKey as drawKey } from '@darkroom/client';
import { drawSeed } from '../requests/draw-seed.ts';
import { followRequest } from '../requests/follow-request.ts';
import { isOpen } from '../requests/request-life.ts';
import type { StreamSlots } from '../requests/stream-slots.ts';
import { absenceOf, errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { type TurnInput, restartFrom, messagesOf, openTurn, type Turn, type TurnOutcome, withEnd } from './chat.ts';
import type { createChatStorage } from './chat-storage.ts';
import { usableText, newTextState, textAfterEvent, textAfterPoll, type TextState, textWords } from './text-state.ts';

export interface ConversationOptions {
  storage: ReturnType<typeof createChatStorage>;
  session: Session;
  slots: StreamSlots;
  /** Called when turns were added, removed or ended. */
  onTurns: (turns: readonly Turn[]) => void;
  /** Called when the open turn's answer has grown. */
  onGrowth: (turn: Turn, state: TextState) => void;
}

/** Models that are greedy by default need a temperature to give another answer with another seed. */
const otherTemperature = 0.8;

/**
 * Sends one turn after the other, and follows the open one's answer. The stored state is authoritative: a reload
 * continues from it.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  #turns: readonly Turn[];
  #state = newTextState;
  /** Id of the open turn's last event seen. */
  #last: string | undefined;
  #followedKey: string | undefined;
  #run: AbortController | undefined;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#turns = options.storage.read();
  }

  get turns(): readonly Turn[] {
    return this.#turns;
  }

  /** Shows the stored turns and continues: on load, and after a change by another tab. */
  resume(): void {
    this.#turns = this.#options.storage.read();
    this.#options.onTurns(this.#turns);
    this.#drive();
  }

  /** Stops following while the page is hidden. The server continues to write. */
  pause(): void {
    this.#run?.abort();
    this.#run = undefined;
  }

  send(wish: string, model: string): void {
    this.#change([...this.#turns, { key: drawKey(), wish, model, seed: drawSeed() }]);
  }

  /** Changes a turn's wish; it and all later turns are sent again. */
  edit({ key, model, seed }: Turn, wish: string): void {
    this.#restartFrom(key, { key: drawKey(), wish, model, seed });
  }

  /** Sends the same wish with another seed; later turns are sent again. */
  again({ key, wish, model }: Turn): void {
    this.#restartFrom(key, { key: drawKey(), wish, model, seed: drawSeed(), temperature: otherTemperature });
  }

  setImage(key: string, imageId: string): void {
    this.#change(this.#turns.map((turn) => (turn.key === key ? { ...turn, imageId } : turn)));
  }

  /** Stops the answer that is being written; the text so far is preserved. */
  async stop(): Promise<void> {
    const turn = openTurn(this.#turns);
    if (turn === undefined) return;
    // Not sent yet, as far as this page knows.
    if (turn.id === undefined) return this.#end(turn, { outcome: 'canceled', note: 'Stopped' });
    this.#grow(turn, { ...this.#state, isCanceling: true });
    try {
      await this.#options.session.client.cancel(turn.id);
    } catch (error) {
      // 409: it ended at the same moment; the next update shows how.
      const isLate = error instanceof ClientError && error.status === 409;
      this.#grow(turn, { ...this.#state, isCanceling: false, problem: isLate ? undefined : errorWords(error) });
    }
  }

  clear(): void {
    this.#cancelOpen();
    this.#change([]);
  }

  #restartFrom(key: string, asking: TurnInput): void {
    this.#cancelOpen();
    this.#change(restartFrom(this.#turns, key, asking, drawKey));
  }

  /** Cancels the open turn's request, whose answer is no longer needed. */
  #cancelOpen(): void {
    const id = openTurn(this.#turns)?.id;
    if (id !== undefined) this.#options.session.client.cancel(id).catch(() => {});
  }

  #change(turns: readonly Turn[]): void {
    this.#turns = turns;
    this.#options.storage.write(turns);
    this.#options.onTurns(turns);
    this.#drive();
  }

  /** Starts to work on the open turn, unless that is running already. */
  #drive(): void {
    const turn = openTurn(this.#turns);
    if (turn?.key === this.#followedKey && this.#run?.signal.aborted === false) return;
    this.#run?.abort();
    this.#run = undefined;
    if (turn === undefined) return;
    const run = (this.#run = new AbortController());
    if (turn.key !== this.#followedKey) [this.#state, this.#last] = [newTextState, undefined];
    this.#followedKey = turn.key;
    this.#answer(turn, run.signal)
      .catch((error: unknown) => {
        if (!run.signal.aborted) this.#fail(turn, error);
      })
      .finally(() => run.abort());
  }

  async #answer(turn: Turn, signal: AbortSignal): Promise<void> {
    const { session, slots } = this.#options;
    this.#grow(turn, this.#state);
    const id = turn.id ?? (await this.#submit(turn));
    signal.throwIfAborted();
    await followRequest({
      client: session.client,
      id,
      slots,
      signal,
      after: () => this.#last,
      isQueued: () => this.#state.status === 'queued',
      onPoll: (view, isStreaming) => this.#grow(turn, textAfterPoll(this.#state, view, isStreaming)),
      onEvent: (event) => {
        this.#last = event.id;
        this.#grow(turn, textAfterEvent(this.#state, event));
      },
    });
    signal.throwIfAborted();
    const { status, text } = this.#state;
    if (isOpen(this.#state)) throw new Error(`the events of ${id} ended before it did`);
    const note = status === 'canceled' ? 'Stopped' : textWords(this.#state);
    this.#end(turn, { outcome: status as TurnOutcome, answer: usableText(text), note });
  }

  /**
   * Submits a turn's request and stores its id. If the conversation exceeds the model's context, omits the oldest
   * turns.
   */
  async #submit(turn: Turn): Promise<string> {
    const { client } = this.#options.session;
    const { key, model, seed, temperature } = turn;
    for (let leftOut = turn.leftOut ?? 0; ; leftOut++) {
      const messages = messagesOf(this.#turns, { ...turn, leftOut });
      const request = { model, messages, seed, ...(temperature !== undefined && { temperature }) };
      try {
        // Not abortable: only a request with a known id can be canceled.
        const { request_id: id } = await client.submit(request, { idempotencyKey: key });
        if (!this.#turns.some((each) => each.key === key && each.outcome === undefined)) {
          client.cancel(id).catch(() => {});
          return id;
        }
        this.#turns = this.#turns.map((each) => (each.key === key ? { ...each, id, leftOut } : each));
        this.#options.storage.write(this.#turns);
        this.#options.onTurns(this.#turns);
        return id;
      } catch (error) {
        const isTooLong = error instanceof ClientError && error.code === 'context_length_exceeded';
        if (!isTooLong || messages.length === 1) throw error;
      }
    }
  }

  #grow(turn: Turn, state: TextState): void {
    if (turn.key !== this.#followedKey) return;
    this.#state = state;
    this.#options.onGrowth(turn, state);
  }

  #fail(turn: Turn, error: unknown): void {
    const absence = absenceOf(error);
    const note = absence === undefined ? errorWords(error) : textWords({ ...this.#state, status: absence });
    this.#end(turn, { outcome: 'failed', answer: usableText(this.#state.text), note });
  }

  #end({ key }: Turn, end: Pick<Turn, 'outcome' | 'answer' | 'note'>): void {
    this.#change(withEnd(this.#turns, key, end));
  }
}

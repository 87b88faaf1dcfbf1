import { ClientError } from '@darkroom/client';
import { drawSeed } from '../requests/draw-seed.ts';
import { followRequest } from '../requests/follow-request.ts';
import { isOpen } from '../requests/request-life.ts';
import type { StreamSlots } from '../requests/stream-slots.ts';
import { absenceOf, errorWords } from '../server/error-words.ts';
import type { Session } from '../server/session.ts';
import { type Asking, askedAnew, messagesOf, openTurn, type Turn, type TurnOutcome, withEnd } from './chat.ts';
import type { createChatStorage } from './chat-storage.ts';
import { keptText, newTextState, textAfterEvent, textAfterPoll, type TextState, textWords } from './text-state.ts';

export interface ConversationOptions {
  storage: ReturnType<typeof createChatStorage>;
  session: Session;
  slots: StreamSlots;
  /** Turns came, went or ended. */
  onTurns: (turns: readonly Turn[]) => void;
  /** The open turn has got further. */
  onGrowth: (turn: Turn, state: TextState) => void;
}

/** Where a model takes the most probable token always, another seed needs this to be another answer. */
const otherTemperature = 0.8;

/** Asks one turn after the other, and follows the answer of the open one. What is stored is the truth: a reload goes on from it. */
export class Conversation {
  readonly #options: ConversationOptions;
  #turns: readonly Turn[];
  #state = newTextState;
  /** Of the open turn: the last event seen. */
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

  /** Shows what is stored and goes on with it: after loading, and when another tab has changed it. */
  resume(): void {
    this.#turns = this.#options.storage.read();
    this.#options.onTurns(this.#turns);
    this.#drive();
  }

  /** Stops following, as while nobody looks. The server writes on. */
  pause(): void {
    this.#run?.abort();
    this.#run = undefined;
  }

  send(wish: string, model: string): void {
    this.#change([...this.#turns, { key: drawKey(), wish, model, seed: drawSeed() }]);
  }

  /** The turn with another wish, and everything after it, are asked anew. */
  edit({ key, model, seed }: Turn, wish: string): void {
    this.#askAnew(key, { key: drawKey(), wish, model, seed });
  }

  /** The same wish with another seed; what follows from its answer is asked anew. */
  again({ key, wish, model }: Turn): void {
    this.#askAnew(key, { key: drawKey(), wish, model, seed: drawSeed(), temperature: otherTemperature });
  }

  setPicture(key: string, pictureId: string): void {
    this.#change(this.#turns.map((turn) => (turn.key === key ? { ...turn, pictureId } : turn)));
  }

  /** Ends the answer that is being written; what stands of it stays. */
  async stop(): Promise<void> {
    const turn = openTurn(this.#turns);
    if (turn === undefined) return;
    // Not sent yet, as far as this page knows.
    if (turn.id === undefined) return this.#end(turn, { outcome: 'canceled', note: 'Stopped' });
    this.#grow(turn, { ...this.#state, isCanceling: true });
    try {
      await this.#options.session.client.cancel(turn.id);
    } catch (error) {
      // Ended in the same moment (409): what follows it says how.
      const isLate = error instanceof ClientError && error.status === 409;
      this.#grow(turn, { ...this.#state, isCanceling: false, problem: isLate ? undefined : errorWords(error) });
    }
  }

  clear(): void {
    this.#cancelOpen();
    this.#change([]);
  }

  #askAnew(key: string, asking: Asking): void {
    this.#cancelOpen();
    this.#change(askedAnew(this.#turns, key, asking, drawKey));
  }

  /** Nobody wants it any more. */
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

  /** Works on the open turn, unless it does. */
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
    const id = turn.id ?? (await this.#ask(turn));
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
    this.#end(turn, { outcome: status as TurnOutcome, answer: keptText(text), note });
  }

  /** Sends it, and keeps its id. Of a conversation that is longer than the model reads, the oldest turns are left out. */
  async #ask(turn: Turn): Promise<string> {
    const { client } = this.#options.session;
    const { key, model, seed, temperature } = turn;
    for (let leftOut = turn.leftOut ?? 0; ; leftOut++) {
      const messages = messagesOf(this.#turns, { ...turn, leftOut });
      const request = { model, messages, seed, ...(temperature !== undefined && { temperature }) };
      try {
        // To its end, even if nobody wants it any more: only then it can be canceled.
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
    this.#end(turn, { outcome: 'failed', answer: keptText(this.#state.text), note });
  }

  #end({ key }: Turn, end: Pick<Turn, 'outcome' | 'answer' | 'note'>): void {
    this.#change(withEnd(this.#turns, key, end));
  }
}

/** 128 random bits; `crypto.randomUUID` is not there on pages without TLS. */
function drawKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

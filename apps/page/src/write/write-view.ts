import type { ImageRequestState } from '../requests/request-state.ts';
import type { StreamSlots } from '../requests/stream-slots.ts';
import type { Session } from '../server/session.ts';
import { errorWords } from '../server/error-words.ts';
import { findElement } from '../shell/find-element.ts';
import type { PageStorage } from '../shell/page-storage.ts';
import { openTurn, type Turn } from './chat.ts';
import { createChatStorage } from './chat-storage.ts';
import { Conversation } from './conversation.ts';
import type { TextState } from './text-state.ts';
import { createTurnView, type TurnActions, type TurnView } from './turn-view.ts';

export interface WriteViewOptions {
  storage: PageStorage;
  session: Session;
  slots: StreamSlots;
  /** Returns the chosen model; undefined if there is none. */
  chosenWriter: () => string | undefined;
  /** Draws a prompt; resolves with the request's id, or undefined if there is not an image model. */
  draw: (prompt: string) => Promise<string | undefined>;
  watchImage: (id: string, onChange: (state: ImageRequestState | undefined) => void) => void;
  openImage: (id: string, index: number) => void;
}

/** The conversation and its input field. */
export class WriteView {
  readonly #options: WriteViewOptions;
  readonly #view = findElement(document, '#write-view', HTMLElement);
  readonly #wish = findElement(this.#view, '#wish', HTMLTextAreaElement);
  readonly #turns = new Map<string, TurnView>();
  readonly #conversation: Conversation;

  constructor(options: WriteViewOptions) {
    this.#options = options;
    const { storage, session, slots, watchImage, openImage } = options;
    const stop = (): void => void this.#conversation.stop();
    const actions: TurnActions = {
      edit: (turn, words) => {
        this.#conversation.edit(turn, words);
        this.focus();
      },
      again: (turn) => this.#conversation.again(turn),
      stop,
      develop: (turn) => this.#develop(turn),
      watchImage,
      openImage,
    };
    this.#conversation = new Conversation({
      storage: createChatStorage(storage),
      session,
      slots,
      onTurns: (turns) => showTurns(this.#view, this.#turns, turns, (turn) => createTurnView(turn, actions)),
      onGrowth: (turn, state) => growInSight(this.#turns.get(turn.key), state),
    });
    const editLast = (): void => [...this.#turns.values()].at(-1)?.editor.open();
    addComposer(this.#view, this.#wish, { send: () => this.#send(), stop, editLast });
    findElement(this.#view, '#clear', HTMLButtonElement).addEventListener('click', () => {
      this.#conversation.clear();
      this.focus();
    });
  }

  focus(): void {
    this.#wish.focus();
  }

  resume(): void {
    this.#conversation.resume();
  }

  pause(): void {
    this.#conversation.pause();
  }

  /** Enables or disables sending after the models changed. */
  showWriters(): void {
    const isMissing = this.#options.chosenWriter() === undefined;
    findElement(this.#view, '#send', HTMLButtonElement).ariaDisabled = isMissing ? 'true' : null;
  }

  #send(): void {
    const words = this.#wish.value.trim();
    const model = this.#options.chosenWriter();
    if (words === '' || model === undefined || openTurn(this.#conversation.turns) !== undefined) return;
    this.#wish.value = '';
    this.#conversation.send(words, model);
    scrollToEnd();
  }

  async #develop({ key, answer = '' }: Turn): Promise<string | undefined> {
    try {
      const id = await this.#options.draw(answer);
      if (id === undefined) return 'No worker has loaded an image model yet.';
      this.#conversation.setImage(key, id);
      return undefined;
    } catch (error) {
      return errorWords(error);
    }
  }
}

/** Updates a turn; scrolls to the end if the user was there before. */
function growInSight(turn: TurnView | undefined, state: TextState): void {
  const isAtEnd = isNearEnd();
  turn?.grow(state);
  if (isAtEnd) scrollToEnd();
}

function showTurns(
  view: HTMLElement,
  views: Map<string, TurnView>,
  turns: readonly Turn[],
  create: (turn: Turn) => TurnView,
): void {
  const list = findElement(view, '#turns', HTMLOListElement);
  const wanted = new Set(turns.map(({ key }) => key));
  for (const [key, shown] of views) {
    if (wanted.has(key)) continue;
    shown.dispose();
    views.delete(key);
  }
  turns.forEach((turn, index) => {
    const shown = views.get(turn.key) ?? create(turn);
    views.set(turn.key, shown);
    shown.show(turn);
    if (list.children[index] !== shown.element) list.insertBefore(shown.element, list.children[index] ?? null);
  });
  const isOpen = openTurn(turns) !== undefined;
  findElement(view, '#no-turns', HTMLElement).hidden = turns.length > 0;
  findElement(view, '#clear', HTMLButtonElement).hidden = turns.length === 0;
  findElement(view, '#send', HTMLButtonElement).hidden = isOpen;
  findElement(view, '#stop', HTMLButtonElement).hidden = !isOpen;
}

function addComposer(
  view: HTMLElement,
  wish: HTMLTextAreaElement,
  { send, stop, editLast }: Record<'send' | 'stop' | 'editLast', () => void>,
): void {
  const stopButton = findElement(view, '#stop', HTMLButtonElement);
  findElement(view, '#composer', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    send();
  });
  stopButton.addEventListener('click', () => {
    stop();
    wish.focus();
  });
  wish.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send();
    else if (event.key === 'ArrowUp' && wish.value === '') editLast();
    else return;
    event.preventDefault();
  });
  view.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape' && !stopButton.hidden) stop();
  });
}

function isNearEnd(): boolean {
  const { scrollHeight, clientHeight } = document.documentElement;
  return scrollHeight - clientHeight - scrollY < 120;
}

function scrollToEnd(): void {
  scrollTo(0, document.documentElement.scrollHeight);
}

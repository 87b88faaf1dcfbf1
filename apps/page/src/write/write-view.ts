import type { RequestState } from '../requests/request-state.ts';
import type { StreamSlots } from '../requests/stream-slots.ts';
import type { Session } from '../server/session.ts';
import { errorWords } from '../server/error-words.ts';
import { findElement } from '../shell/find-element.ts';
import type { PageStorage } from '../shell/page-storage.ts';
import { openTurn, type Turn } from './chat.ts';
import { createChatStorage } from './chat-storage.ts';
import { Conversation } from './conversation.ts';
import { createTurnView, type TurnView } from './turn-view.ts';

export interface WriteViewOptions {
  storage: PageStorage;
  session: Session;
  slots: StreamSlots;
  /** The model that is chosen; undefined while there is none. */
  chosenWriter: () => string | undefined;
  /** Has a prompt drawn; the request's id, or undefined when there is no model for it. */
  draw: (prompt: string) => Promise<string | undefined>;
  watchPicture: (id: string, onChange: (state: RequestState | undefined) => void) => void;
}

/** The conversation, and the field below it. */
export function createWriteView({ storage, session, slots, chosenWriter, draw, watchPicture }: WriteViewOptions) {
  const view = findElement(document, '#write-view', HTMLElement);
  const wish = findElement(view, '#wish', HTMLTextAreaElement);
  const turns = new Map<string, TurnView>();
  const develop = async (turn: Turn): Promise<string | undefined> => {
    try {
      const id = await draw(turn.answer ?? '');
      if (id === undefined) return 'There is no picture model here yet.';
      conversation.setPicture(turn.key, id);
      return undefined;
    } catch (error) {
      return errorWords(error);
    }
  };
  const actions = {
    edit(turn: Turn, words: string): void {
      conversation.edit(turn, words);
      wish.focus();
    },
    again: (turn: Turn): void => conversation.again(turn),
    stop: (): void => void conversation.stop(),
    develop,
    watchPicture,
  };
  const conversation = new Conversation({
    storage: createChatStorage(storage),
    session,
    slots,
    onTurns: (all) => showTurns(view, turns, all, (turn) => createTurnView(turn, actions)),
    onGrowth(turn, state) {
      const isAtEnd = isNearEnd();
      turns.get(turn.key)?.grow(state);
      if (isAtEnd) scrollToEnd();
    },
  });
  const send = (): void => {
    const words = wish.value.trim();
    const model = chosenWriter();
    if (words === '' || model === undefined || openTurn(conversation.turns) !== undefined) return;
    wish.value = '';
    conversation.send(words, model);
    scrollToEnd();
  };
  addComposer(view, wish, { send, stop: actions.stop, editLast: () => [...turns.values()].at(-1)?.editor.open() });
  findElement(view, '#clear', HTMLButtonElement).addEventListener('click', () => {
    conversation.clear();
    wish.focus();
  });
  return {
    focus: (): void => wish.focus(),
    stop: actions.stop,
    resume: (): void => conversation.resume(),
    pause: (): void => conversation.pause(),
    /** Whether somebody can be asked has changed. */
    showWriters(): void {
      findElement(view, '#send', HTMLButtonElement).ariaDisabled = chosenWriter() === undefined ? 'true' : null;
    },
  };
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

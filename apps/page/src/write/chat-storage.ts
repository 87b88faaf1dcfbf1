import { type PageStorage, parseItems } from '../shell/page-storage.ts';
import type { Turn } from './chat.ts';

export const chatKey = 'darkroom.chat';
const maxTurns = 200;

/** Stores the conversation in this browser, the oldest turn first. */
export function createChatStorage(storage: Pick<PageStorage, 'getItem' | 'setItem'>) {
  return {
    read: (): Turn[] => parseItems(storage.getItem(chatKey), isTurn),
    write: (turns: readonly Turn[]): void => storage.setItem(chatKey, JSON.stringify(turns.slice(-maxTurns))),
  };
}

function isTurn(value: unknown): value is Turn {
  if (typeof value !== 'object' || value === null) return false;
  const { key, wish, model, seed, id = '', answer = '', imageId = '' } = value as Partial<Turn>;
  return [key, wish, model, id, answer, imageId].every((part) => typeof part === 'string') && typeof seed === 'number';
}

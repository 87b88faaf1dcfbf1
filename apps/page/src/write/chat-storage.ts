import type { PageStorage } from '../shell/page-storage.ts';
import type { Turn } from './chat.ts';

export const chatKey = 'darkroom.chat';
const maxTurns = 200;

/** The conversation of this browser, the oldest turn first. */
export function createChatStorage(storage: Pick<PageStorage, 'getItem' | 'setItem'>) {
  return {
    read: (): Turn[] => parsed(storage.getItem(chatKey)),
    write: (turns: readonly Turn[]): void => storage.setItem(chatKey, JSON.stringify(turns.slice(-maxTurns))),
  };
}

/** What an older or newer page wrote, or a hand, must not break this one. */
function parsed(text: string | null): Turn[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(value) ? value.filter(isTurn) : [];
  } catch {
    return [];
  }
}

function isTurn(value: unknown): value is Turn {
  if (typeof value !== 'object' || value === null) return false;
  const { key, wish, model, seed, id = '', answer = '', pictureId = '' } = value as Partial<Turn>;
  return (
    [key, wish, model, id, answer, pictureId].every((part) => typeof part === 'string') && typeof seed === 'number'
  );
}

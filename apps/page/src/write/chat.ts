import type { TextMessage } from '@darkroom/client';

/** How an answer ended. `unasked`: the one before it did not come to its end, so nothing could follow it. */
export type TurnOutcome = 'succeeded' | 'failed' | 'canceled' | 'expired' | 'unasked';

/** A wish, and what the writer made of it. Plain JSON: it is kept in the browser. */
export interface Turn {
  /** Names this asking of it, also to the server: asked twice, it is asked once. */
  key: string;
  wish: string;
  model: string;
  seed: number;
  /** Absent for the model's own. */
  temperature?: number;
  /** The request's, once it was sent. */
  id?: string;
  /** Earlier turns that the model had no room for. */
  leftOut?: number;
  /** Absent while it is open. */
  outcome?: TurnOutcome;
  /** What stands in the end. */
  answer?: string;
  /** Of the end, for people. */
  note?: string;
  /** The picture that was made of the answer, in the gallery. */
  pictureId?: string;
}

/** What makes an asking: everything else comes of it. */
export type Asking = Pick<Turn, 'key' | 'wish' | 'model' | 'seed' | 'temperature'>;

/** The one that is being answered, or is to be asked next. */
export function openTurn(turns: readonly Turn[]): Turn | undefined {
  return turns.find(({ outcome }) => outcome === undefined);
}

/** What the model is told for a turn: all before it that was answered, but for the oldest `leftOut`. */
export function messagesOf(turns: readonly Turn[], { key, wish, leftOut = 0 }: Turn): TextMessage[] {
  const at = turns.findIndex((turn) => turn.key === key);
  const before = turns.slice(0, at).filter(({ answer = '' }) => answer !== '');
  const told = before.slice(leftOut).flatMap((turn) => [
    { role: 'user', content: turn.wish },
    { role: 'assistant', content: turn.answer! },
  ]);
  return [...told, { role: 'user', content: wish }];
}

/** With another asking in the place of a turn, and everything after it to be asked anew, since it follows from this one. */
export function askedAnew(turns: readonly Turn[], key: string, asking: Asking, drawKey: () => string): Turn[] {
  const at = turns.findIndex((turn) => turn.key === key);
  if (at < 0) return [...turns];
  const after = turns.slice(at + 1).map(({ wish, model, seed, temperature }) => ({
    key: drawKey(),
    wish,
    model,
    seed,
    ...(temperature !== undefined && { temperature }),
  }));
  return [...turns.slice(0, at), asking, ...after];
}

/** With what came of a turn; what waits behind one that did not succeed is not asked. */
export function withEnd(turns: readonly Turn[], key: string, end: Pick<Turn, 'outcome' | 'answer' | 'note'>): Turn[] {
  const at = turns.findIndex((turn) => turn.key === key);
  return turns.map((turn, index) => {
    if (index === at) return { ...turn, ...end };
    const isBehind = at >= 0 && index > at && turn.outcome === undefined && end.outcome !== 'succeeded';
    return isBehind ? { ...turn, outcome: 'unasked' } : turn;
  });
}

import type { TextMessage } from '@darkroom/client';

/** The outcome of a turn. `unasked`: not sent, because the turn before it did not succeed. */
export type TurnOutcome = 'succeeded' | 'failed' | 'canceled' | 'expired' | 'unasked';

/** A user's wish and the writer's answer. Plain JSON: it is stored in the browser. */
export interface Turn {
  /** Identifies this try; also its idempotency key, so that sending it twice makes one request. */
  key: string;
  wish: string;
  model: string;
  seed: number;
  /** Absent for the model's default. */
  temperature?: number;
  /** Id of the request, once it is sent. */
  id?: string;
  /** Number of earlier turns omitted because the model's context is full. */
  leftOut?: number;
  /** Absent while the turn is open. */
  outcome?: TurnOutcome;
  /** The final answer. */
  answer?: string;
  /** A note about the outcome, for the user. */
  note?: string;
  /** Id of the answer's image in the gallery. */
  imageId?: string;
}

/** The fields that define a try; the others follow from it. */
export type TurnInput = Pick<Turn, 'key' | 'wish' | 'model' | 'seed' | 'temperature'>;

/** Returns the turn that is being answered, or is the next to send. */
export function openTurn(turns: readonly Turn[]): Turn | undefined {
  return turns.find(({ outcome }) => outcome === undefined);
}

/** Returns the messages for a turn: all earlier answered turns except the oldest `leftOut`, then its own wish. */
export function messagesOf(turns: readonly Turn[], { key, wish, leftOut = 0 }: Turn): TextMessage[] {
  const at = turns.findIndex((turn) => turn.key === key);
  const before = turns.slice(0, at).filter(({ answer = '' }) => answer !== '');
  const earlier = before.slice(leftOut).flatMap((turn) => [
    { role: 'user', content: turn.wish },
    { role: 'assistant', content: turn.answer! },
  ]);
  return [...earlier, { role: 'user', content: wish }];
}

/** Replaces a turn, and resets all later ones, because their context changed. */
export function restartFrom(turns: readonly Turn[], key: string, asking: TurnInput, drawKey: () => string): Turn[] {
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

/** Stores the outcome of a turn; if it did not succeed, later open turns will not be sent. */
export function withEnd(turns: readonly Turn[], key: string, end: Pick<Turn, 'outcome' | 'answer' | 'note'>): Turn[] {
  const at = turns.findIndex((turn) => turn.key === key);
  return turns.map((turn, index) => {
    if (index === at) return { ...turn, ...end };
    const isBehind = at >= 0 && index > at && turn.outcome === undefined && end.outcome !== 'succeeded';
    return isBehind ? { ...turn, outcome: 'unasked' } : turn;
  });
}

import { ApiError, overloaded } from '../http/api-error.ts';

export interface WaitingLineOptions {
  room: number;
  /** The most of it that one owner may have; all of it unless told otherwise. */
  perOwner?: number;
  /** The longest wait, ms. */
  limitMs: number;
}

/** Who wants room. */
export interface Waiter {
  /** `''`: it could be anybody; together they may have all the room. */
  owner: string;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
  /** It has room already, and gets more at once or not at all: two that waited so could wait for each other. */
  isHolding?: boolean;
}

/** Gives room back: all of it, or all but so much. What was given back stays so, whatever it is called with later. */
export type LetGo = (kept?: number) => void;

/** Room that all share, and a line before it. */
export interface WaitingLine {
  /**
   * Waits until there is so much room, first come first served; who wants more than it may ever have gets that. An owner who
   * has all that it may have lets others pass. Throws 503 when it takes too long, and 400 when the waiter is gone.
   */
  take(amount: number, waiter: Waiter): Promise<LetGo>;
}

interface Place {
  owner: string;
  amount: number;
  enter: () => void;
}

export function createWaitingLine({ limitMs, ...size }: WaitingLineOptions): WaitingLine {
  const room = createRoom(size);
  const line = createPlaces(room);
  const stand = (owner: string, amount: number, { signal, isHolding }: Waiter): Promise<void> =>
    new Promise((resolve, reject) => {
      const enter = (): void => {
        stop();
        resolve();
      };
      const place = { owner, amount, enter };
      const leave = (error: ApiError): void => {
        stop();
        reject(error);
        line.leave(place);
      };
      const stop = watch(signal, limitMs, leave);
      line.join(place);
      if (isHolding === true && line.has(place)) leave(overloaded());
    });
  return {
    async take(wanted, waiter) {
      const { owner, signal } = waiter;
      if (signal.aborted) throw clientGone(signal.reason);
      let held = Math.min(wanted, room.mostOf(owner));
      await stand(owner, held, waiter);
      return (kept = 0) => {
        if (kept >= held) return;
        room.move(owner, kept - held);
        held = kept;
        line.admit();
      };
    },
  };
}

/** Those who wait, in their order. */
function createPlaces(room: ReturnType<typeof createRoom>) {
  let waiting: Place[] = [];
  const remove = (place: Place): void => void (waiting = waiting.filter((other) => other !== place));
  const admit = (): void => {
    const full = new Set<string>();
    for (const place of waiting) {
      const { owner, amount } = place;
      if (full.has(owner) || room.isFullFor(owner, amount)) full.add(owner);
      // Nobody else is overtaken: who needs much would never get it.
      else if (amount > room.free()) break;
      else {
        room.move(owner, amount);
        remove(place);
        place.enter();
      }
    }
  };
  return {
    admit,
    has: (place: Place): boolean => waiting.includes(place),
    join(place: Place): void {
      waiting.push(place);
      admit();
    },
    leave(place: Place): void {
      remove(place);
      admit();
    },
  };
}

/** Who has how much of it. */
function createRoom({ room, perOwner = room }: Omit<WaitingLineOptions, 'limitMs'>) {
  const taken = new Map<string, number>();
  let free = room;
  const mostOf = (owner: string): number => (owner === '' ? room : perOwner);
  const has = (owner: string): number => taken.get(owner) ?? 0;
  return {
    free: () => free,
    mostOf,
    isFullFor: (owner: string, amount: number): boolean => has(owner) + amount > mostOf(owner),
    /** Less than 0 gives back. */
    move(owner: string, amount: number): void {
      free -= amount;
      const left = has(owner) + amount;
      if (left === 0) taken.delete(owner);
      else taken.set(owner, left);
    },
  };
}

/** Until the result is called. */
function watch(signal: AbortSignal, limitMs: number, leave: (error: ApiError) => void): () => void {
  const onGone = (): void => leave(clientGone(signal.reason));
  const timer = setTimeout(() => leave(overloaded()), limitMs);
  signal.addEventListener('abort', onGone);
  return () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', onGone);
  };
}

function clientGone(cause: unknown): ApiError {
  return new ApiError(400, 'client_gone', 'the client went away before there was room for its pictures', { cause });
}

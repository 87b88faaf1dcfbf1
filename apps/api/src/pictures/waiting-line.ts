/** Room that all share, and a line before it. */
export interface WaitingLine {
  /** Waits until there is so much room, first come first served. The result gives it back; again does nothing. */
  take(amount: number): Promise<() => void>;
}

/** Who takes more than all there is gets all there is. */
export function createWaitingLine(room: number): WaitingLine {
  let free = room;
  const waiting: { amount: number; enter: () => void }[] = [];
  const admit = (): void => {
    // Nobody is overtaken: else who needs much would never get it.
    for (let next = waiting[0]; next !== undefined && next.amount <= free; next = waiting[0]) {
      waiting.shift();
      free -= next.amount;
      next.enter();
    }
  };
  return {
    take: (wanted) =>
      new Promise((resolve) => {
        const amount = Math.min(wanted, room);
        let isTaken = true;
        const giveBack = (): void => {
          if (!isTaken) return;
          isTaken = false;
          free += amount;
          admit();
        };
        waiting.push({ amount, enter: () => resolve(giveBack) });
        admit();
      }),
  };
}

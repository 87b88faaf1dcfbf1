/** In pixels of the picture that the mask belongs to. */
export interface Point {
  x: number;
  y: number;
}

/** Something that was done to a mask as a whole, or along a line. */
export type MaskMark =
  | { kind: 'stroke'; isEraser: boolean; width: number; points: readonly Point[] }
  /** A mask that was painted before: it is where that is opaque. */
  | { kind: 'given'; mask: CanvasImageSource }
  | { kind: 'invert' }
  | { kind: 'clear' };

/**
 * How a mask came about from nothing. Marks, not pixels: they are small, can be taken back one by one, and are drawn in any
 * size. Never changed, always replaced.
 */
export interface MaskHistory {
  done: readonly MaskMark[];
  /** What was taken back, the last one first. */
  undone: readonly MaskMark[];
}

export const blankHistory: MaskHistory = { done: [], undone: [] };

/** What had been taken back is forgotten. */
export function withMark({ done }: MaskHistory, mark: MaskMark): MaskHistory {
  return { done: [...done, mark], undone: [] };
}

export function withoutLast(history: MaskHistory): MaskHistory {
  const last = history.done.at(-1);
  return last === undefined ? history : { done: history.done.slice(0, -1), undone: [last, ...history.undone] };
}

export function withLastAgain(history: MaskHistory): MaskHistory {
  const [last, ...undone] = history.undone;
  return last === undefined ? history : { done: [...history.done, last], undone };
}

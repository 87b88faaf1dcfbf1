/** In pixels of the mask's image. */
export interface Point {
  x: number;
  y: number;
}

/** One editing operation of a mask. */
export type MaskMark =
  | { kind: 'stroke'; isEraser: boolean; width: number; points: readonly Point[] }
  /** An existing mask, painted where it is opaque. */
  | { kind: 'given'; mask: CanvasImageSource }
  | { kind: 'invert' }
  | { kind: 'clear' };

/**
 * The editing operations of a mask. Operations instead of pixels: they are small, can be undone and can be drawn in any
 * size. Immutable.
 */
export interface MaskHistory {
  done: readonly MaskMark[];
  /** Undone operations, the last one first. */
  undone: readonly MaskMark[];
}

export const blankHistory: MaskHistory = { done: [], undone: [] };

/** Adds an operation; discards undone ones. */
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

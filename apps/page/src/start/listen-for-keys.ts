import type { Point } from './mask-history.ts';

export interface KeyListener {
  /** `by`: a direction, not a distance: x and y are −1, 0 or 1. `isPainting`: Shift is pressed. */
  onMove: (by: Point, isPainting: boolean) => void;
  /** Called to paint a dot. */
  onDot: () => void;
  onUndo: () => void;
  onRedo: () => void;
  onSize: (direction: 1 | -1) => void;
}

const arrows: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

/** Handles keys: undo, redo and brush size in the dialog; arrows and space only while the canvas has the focus. */
export function listenForKeys(dialog: HTMLElement, canvas: HTMLElement, listener: KeyListener): void {
  const commandOf = (event: KeyboardEvent): (() => void) | undefined => {
    const key = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) {
      if (key === 'z') return event.shiftKey ? listener.onRedo : listener.onUndo;
      if (key === 'y') return listener.onRedo;
    }
    // Accept Ctrl: some keyboards need AltGr for brackets, which sets `ctrlKey`.
    if (key === '[') return () => listener.onSize(-1);
    if (key === ']') return () => listener.onSize(1);
    if (event.target !== canvas) return undefined;
    const by = arrows[event.key];
    if (by !== undefined) return () => listener.onMove(by, event.shiftKey);
    return key === ' ' ? listener.onDot : undefined;
  };
  dialog.addEventListener('keydown', (event) => {
    const command = commandOf(event);
    if (command === undefined) return;
    event.preventDefault();
    command();
  });
}

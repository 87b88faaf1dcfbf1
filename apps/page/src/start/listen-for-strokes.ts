import type { Point } from './mask-history.ts';

/** Callbacks for strokes. Points are fractions of the canvas's width and height, 0 to 1 within it. */
export interface StrokeListener {
  /** `isEraser`: drawn with a pen's eraser end. */
  onBegin: (at: Point, isEraser: boolean) => void;
  onMove: (points: readonly Point[]) => void;
  onEnd: () => void;
  /** The system took over the pointer, for example for a gesture. */
  onCancel: () => void;
  /** Called with the pointer's position, painting or not; with undefined when it leaves. */
  onHover: (at: Point | undefined) => void;
}

const primaryButton = 0;
/** The eraser end of a pen. */
const eraserButton = 5;

/** Reports strokes of one pointer at a time: mouse, pen or finger. Other fingers are ignored meanwhile. */
export function listenForStrokes(canvas: HTMLCanvasElement, listener: StrokeListener): void {
  let drawing: number | undefined;
  const pointOf = ({ clientX, clientY }: PointerEvent): Point => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return { x: (clientX - left) / width, y: (clientY - top) / height };
  };
  canvas.addEventListener('pointerdown', (event) => {
    const isEraser = event.button === eraserButton;
    if (drawing !== undefined || (event.button !== primaryButton && !isEraser)) return;
    // Focus the canvas, and do not select text when a stroke leaves it.
    event.preventDefault();
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    drawing = event.pointerId;
    listener.onBegin(pointOf(event), isEraser);
  });
  canvas.addEventListener('pointermove', (event) => {
    listener.onHover(pointOf(event));
    if (event.pointerId !== drawing) return;
    // All positions between two frames, so that a quick curve stays round.
    const events = event.getCoalescedEvents();
    listener.onMove((events.length === 0 ? [event] : events).map(pointOf));
  });
  const endBy = (type: 'pointerup' | 'pointercancel', end: () => void): void =>
    canvas.addEventListener(type, ({ pointerId }) => {
      if (pointerId !== drawing) return;
      drawing = undefined;
      end();
    });
  endBy('pointerup', listener.onEnd);
  endBy('pointercancel', listener.onCancel);
  canvas.addEventListener('pointerleave', () => listener.onHover(undefined));
}

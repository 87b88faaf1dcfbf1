import type { Point } from './mask-history.ts';

/** Points are shares of the canvas's width and height, 0 to 1 within it. */
export interface StrokeListener {
  /** `isEraser`: by a pen's other end. */
  onBegin: (at: Point, isEraser: boolean) => void;
  onMove: (points: readonly Point[]) => void;
  onEnd: () => void;
  /** The system took it for something else, such as a gesture of its own. */
  onCancel: () => void;
  /** Where the pointer is, whether it paints or not; undefined when it has left. */
  onHover: (at: Point | undefined) => void;
}

const primaryButton = 0;
/** As of a pen that is turned around. */
const eraserButton = 5;

/** Strokes of one pointer at a time, be it a mouse, a pen or a finger: another finger draws nothing meanwhile. */
export function listenForStrokes(canvas: HTMLCanvasElement, listener: StrokeListener): void {
  let drawing: number | undefined;
  const pointOf = ({ clientX, clientY }: PointerEvent): Point => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return { x: (clientX - left) / width, y: (clientY - top) / height };
  };
  canvas.addEventListener('pointerdown', (event) => {
    const isEraser = event.button === eraserButton;
    if (drawing !== undefined || (event.button !== primaryButton && !isEraser)) return;
    // The focus goes to the canvas, and no text is chosen by a stroke that leaves it.
    event.preventDefault();
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    drawing = event.pointerId;
    listener.onBegin(pointOf(event), isEraser);
  });
  canvas.addEventListener('pointermove', (event) => {
    listener.onHover(pointOf(event));
    if (event.pointerId !== drawing) return;
    // All places between two frames: a quick curve stays one.
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

import { findElement, partOf } from '../shell/find-element.ts';
import { listenForKeys } from './listen-for-keys.ts';
import { listenForStrokes } from './listen-for-strokes.ts';
import { drawMark, drawMarks, paintedShare, type ImageSize, prepareCanvas } from './mask-drawing.ts';
import {
  blankHistory,
  type MaskHistory,
  type MaskMark,
  type Point,
  withLastAgain,
  withMark,
  withoutLast,
} from './mask-history.ts';

export interface PaintedImage extends ImageSize {
  url: string;
}

type Stroke = Extract<MaskMark, { kind: 'stroke' }>;

const centre: Point = { x: 0.5, y: 0.5 };
/** Relative change of the brush size per key press. */
const sizeShare = 0.25;

/** The dialog for painting a mask over an image, with mouse, pen, finger or keys. */
export class MaskPainter {
  readonly #dialog = findElement(document, '#mask-dialog', HTMLDialogElement);
  readonly #canvas = partOf(this.#dialog, 'canvas', HTMLCanvasElement);
  readonly #brush = partOf(this.#dialog, 'brush', HTMLElement);
  readonly #size = findElement(this.#dialog, '#brush-size', HTMLInputElement);
  #image: PaintedImage = { url: '', width: 1, height: 1 };
  #history = blankHistory;
  #stroke: Stroke | undefined;
  /** Position of the brush, as fractions of the canvas. */
  #at = centre;
  #onDone: (history: MaskHistory) => void = () => {};

  constructor() {
    listenForStrokes(this.#canvas, {
      onBegin: (at, isEraser) => {
        this.#begin(at, isEraser || this.#isErasing);
        this.#showBrush(at);
      },
      onMove: (points) => this.#goOn(points),
      onEnd: () => this.#end(),
      onCancel: () => this.#drop(),
      onHover: (at) => this.#showBrush(at),
    });
    listenForKeys(this.#dialog, this.#canvas, {
      onMove: (by, isPainting) => this.#moveBrush(by, isPainting),
      onDot: () => this.#paintLine([this.#at]),
      onUndo: () => this.#change(withoutLast(this.#history)),
      onRedo: () => this.#change(withLastAgain(this.#history)),
      onSize: (direction) => this.#resize(direction),
    });
    this.#addButtons();
    this.#size.addEventListener('input', () => this.#showBrush(this.#at));
    this.#canvas.addEventListener('blur', () => this.#showBrush(undefined));
    this.#dialog.addEventListener('close', () => this.#close());
  }

  /**
   * @param onDone called once, when the dialog closes in any way: there is no cancel, because everything can be undone.
   */
  open(image: PaintedImage, history: MaskHistory, onDone: (history: MaskHistory) => void): void {
    this.#image = image;
    this.#onDone = onDone;
    this.#at = centre;
    const element = partOf(this.#dialog, 'image', HTMLImageElement);
    element.src = image.url;
    partOf(this.#dialog, 'stage', HTMLElement).style.setProperty('--ratio', String(image.width / image.height));
    prepareCanvas(this.#canvas, image);
    this.#change(history);
    this.#showBrush(undefined);
    this.#dialog.showModal();
    this.#canvas.focus();
  }

  get #isErasing(): boolean {
    return findElement(this.#dialog, 'input[value=erase]', HTMLInputElement).checked;
  }

  /** In the image's pixels. */
  get #brushWidth(): number {
    return (Number(this.#size.value) / 100) * Math.max(this.#image.width, this.#image.height);
  }

  #addButtons(): void {
    const actions: Record<string, () => void> = {
      undo: () => this.#change(withoutLast(this.#history)),
      redo: () => this.#change(withLastAgain(this.#history)),
      invert: () => this.#change(withMark(this.#history, { kind: 'invert' })),
      clear: () => this.#change(withMark(this.#history, { kind: 'clear' })),
      done: () => this.#dialog.close(),
    };
    for (const [name, act] of Object.entries(actions))
      partOf(this.#dialog, name, HTMLButtonElement).addEventListener('click', act);
  }

  #begin(at: Point, isEraser: boolean): void {
    this.#stroke = { kind: 'stroke', isEraser, width: this.#brushWidth, points: [this.#pixel(at)] };
    drawMark(this.#canvas, this.#image, this.#stroke);
  }

  #goOn(points: readonly Point[]): void {
    if (this.#stroke === undefined) return;
    const before = this.#stroke.points.slice(-1);
    const added = points.map((point) => this.#pixel(point));
    this.#stroke = { ...this.#stroke, points: [...this.#stroke.points, ...added] };
    // Draw only the new part, so that long strokes do not get slower.
    drawMark(this.#canvas, this.#image, { ...this.#stroke, points: [...before, ...added] });
  }

  #end(): void {
    if (this.#stroke === undefined) return;
    const stroke = this.#stroke;
    this.#stroke = undefined;
    this.#change(withMark(this.#history, stroke));
  }

  #drop(): void {
    this.#stroke = undefined;
    this.#change(this.#history);
  }

  #moveBrush({ x, y }: Point, isPainting: boolean): void {
    const { width, height } = this.#image;
    const step = this.#brushWidth / 4;
    const from = this.#at;
    this.#showBrush({ x: within(from.x + (x * step) / width), y: within(from.y + (y * step) / height) });
    if (isPainting) this.#paintLine([from, this.#at]);
  }

  #paintLine(points: readonly Point[]): void {
    this.#begin(points[0]!, this.#isErasing);
    this.#goOn(points.slice(1));
    this.#end();
  }

  #resize(direction: 1 | -1): void {
    const value = Number(this.#size.value);
    // At least one: a quarter of a small size rounds to 0.
    this.#size.value = String(value + direction * Math.max(1, Math.round(value * sizeShare)));
    this.#showBrush(this.#at);
  }

  /** Shows the mask of a history, and enables undo and redo. */
  #change(history: MaskHistory): void {
    this.#history = history;
    drawMarks(this.#canvas, this.#image, history.done);
    const share = paintedShare(this.#canvas);
    const percent = share > 0 && share < 0.01 ? 'less than 1' : String(Math.round(share * 100));
    partOf(this.#dialog, 'painted', HTMLElement).textContent = `${percent} % will be redrawn`;
    // Not `disabled`, which would move the focus off the button.
    for (const [name, marks] of [['undo', history.done] as const, ['redo', history.undone] as const])
      partOf(this.#dialog, name, HTMLButtonElement).ariaDisabled = marks.length === 0 ? 'true' : null;
  }

  #showBrush(at: Point | undefined): void {
    this.#brush.hidden = at === undefined;
    if (at === undefined) return;
    this.#at = at;
    const { width, height } = this.#image;
    this.#brush.style.left = `${at.x * 100}%`;
    this.#brush.style.top = `${at.y * 100}%`;
    this.#brush.style.width = `${(this.#brushWidth / width) * 100}%`;
    this.#brush.style.height = `${(this.#brushWidth / height) * 100}%`;
  }

  #close(): void {
    // Ends a stroke in progress.
    this.#end();
    this.#onDone(this.#history);
  }

  #pixel({ x, y }: Point): Point {
    return { x: x * this.#image.width, y: y * this.#image.height };
  }
}

function within(share: number): number {
  return Math.min(1, Math.max(0, share));
}

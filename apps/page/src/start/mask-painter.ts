import { findElement, partOf } from '../shell/find-element.ts';
import { listenForKeys } from './listen-for-keys.ts';
import { listenForStrokes } from './listen-for-strokes.ts';
import { drawMark, drawMarks, paintedShare, type PictureSize, prepareCanvas } from './mask-drawing.ts';
import {
  blankHistory,
  type MaskHistory,
  type MaskMark,
  type Point,
  withLastAgain,
  withMark,
  withoutLast,
} from './mask-history.ts';

export interface PaintedPicture extends PictureSize {
  url: string;
}

type Stroke = Extract<MaskMark, { kind: 'stroke' }>;

const centre: Point = { x: 0.5, y: 0.5 };
/** What a key changes the brush's size by. */
const sizeShare = 0.25;

/** The dialog in which a mask is painted over a picture, with mouse, pen, finger or keys. */
export class MaskPainter {
  readonly #dialog = findElement(document, '#mask-dialog', HTMLDialogElement);
  readonly #canvas = partOf(this.#dialog, 'canvas', HTMLCanvasElement);
  readonly #brush = partOf(this.#dialog, 'brush', HTMLElement);
  readonly #size = findElement(this.#dialog, '#brush-size', HTMLInputElement);
  #picture: PaintedPicture = { url: '', width: 1, height: 1 };
  #history = blankHistory;
  #stroke: Stroke | undefined;
  /** Where the brush is, as shares of the canvas. */
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

  /** @param onDone told once, when the dialog is closed in whatever way: all can be taken back in it. */
  open(picture: PaintedPicture, history: MaskHistory, onDone: (history: MaskHistory) => void): void {
    this.#picture = picture;
    this.#onDone = onDone;
    this.#at = centre;
    const image = partOf(this.#dialog, 'image', HTMLImageElement);
    image.src = picture.url;
    partOf(this.#dialog, 'stage', HTMLElement).style.setProperty('--ratio', String(picture.width / picture.height));
    prepareCanvas(this.#canvas, picture);
    this.#change(history);
    this.#showBrush(undefined);
    this.#dialog.showModal();
    this.#canvas.focus();
  }

  get #isErasing(): boolean {
    return findElement(this.#dialog, 'input[value=erase]', HTMLInputElement).checked;
  }

  /** In the picture's pixels. */
  get #brushWidth(): number {
    return (Number(this.#size.value) / 100) * Math.max(this.#picture.width, this.#picture.height);
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
    drawMark(this.#canvas, this.#picture, this.#stroke);
  }

  #goOn(points: readonly Point[]): void {
    if (this.#stroke === undefined) return;
    const before = this.#stroke.points.slice(-1);
    const added = points.map((point) => this.#pixel(point));
    this.#stroke = { ...this.#stroke, points: [...this.#stroke.points, ...added] };
    // Only what is new of it: a long stroke gets no slower.
    drawMark(this.#canvas, this.#picture, { ...this.#stroke, points: [...before, ...added] });
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
    const { width, height } = this.#picture;
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
    // At least one further: a quarter of a small one is nothing.
    this.#size.value = String(value + direction * Math.max(1, Math.round(value * sizeShare)));
    this.#showBrush(this.#at);
  }

  /** Shows the mask as it is after that, and what can be done with it. */
  #change(history: MaskHistory): void {
    this.#history = history;
    drawMarks(this.#canvas, this.#picture, history.done);
    const share = paintedShare(this.#canvas);
    const percent = share > 0 && share < 0.01 ? 'less than 1' : String(Math.round(share * 100));
    partOf(this.#dialog, 'painted', HTMLElement).textContent = `${percent} % is painted anew`;
    // Not `disabled`, which would throw the focus off the button.
    for (const [name, marks] of [['undo', history.done] as const, ['redo', history.undone] as const])
      partOf(this.#dialog, name, HTMLButtonElement).ariaDisabled = marks.length === 0 ? 'true' : null;
  }

  #showBrush(at: Point | undefined): void {
    this.#brush.hidden = at === undefined;
    if (at === undefined) return;
    this.#at = at;
    const { width, height } = this.#picture;
    this.#brush.style.left = `${at.x * 100}%`;
    this.#brush.style.top = `${at.y * 100}%`;
    this.#brush.style.width = `${(this.#brushWidth / width) * 100}%`;
    this.#brush.style.height = `${(this.#brushWidth / height) * 100}%`;
  }

  #close(): void {
    // A stroke that nobody has ended.
    this.#end();
    this.#onDone(this.#history);
  }

  #pixel({ x, y }: Point): Point {
    return { x: x * this.#picture.width, y: y * this.#picture.height };
  }
}

function within(share: number): number {
  return Math.min(1, Math.max(0, share));
}

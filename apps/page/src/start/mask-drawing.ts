import type { MaskMark, Point } from './mask-history.ts';

/** Pixels. */
export interface PictureSize {
  width: number;
  height: number;
}

type Stroke = Extract<MaskMark, { kind: 'stroke' }>;

/** Seen on any picture: what is painted lies over it like the safelight. */
const ink = '#ff4a2a';
/** For what is shown: sharp enough for large screens, quick enough for phones. */
const shownLongestSide = 1024;

/** A canvas that shows a mask of a picture of that size, opaque where something is painted. */
export function prepareCanvas(canvas: HTMLCanvasElement, { width, height }: PictureSize): void {
  const scale = shownLongestSide / Math.max(width, height);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
}

/** Draws a mask from nothing, in the canvas's size. */
export function drawMarks(canvas: HTMLCanvasElement, picture: PictureSize, marks: readonly MaskMark[]): void {
  contextOf(canvas, picture).clearRect(0, 0, picture.width, picture.height);
  for (const mark of marks) drawMark(canvas, picture, mark);
}

export function drawMark(canvas: HTMLCanvasElement, picture: PictureSize, mark: MaskMark): void {
  const context = contextOf(canvas, picture);
  const { width, height } = picture;
  switch (mark.kind) {
    case 'stroke':
      return drawStroke(context, mark);
    case 'given':
      return context.drawImage(mark.mask, 0, 0, width, height);
    case 'clear':
      return context.clearRect(0, 0, width, height);
    case 'invert':
      // What is drawn stays where nothing was.
      context.globalCompositeOperation = 'source-out';
      return context.fillRect(0, 0, width, height);
  }
}

/** How much of it is painted, 0 to 1. */
export function paintedShare(canvas: HTMLCanvasElement): number {
  const { data } = contextOf(canvas, canvas).getImageData(0, 0, canvas.width, canvas.height);
  let painted = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at]! >= 128) painted++;
  return painted / (data.length / 4);
}

/** The mask as the API takes it, of the picture's size: white where to paint anew, black elsewhere. */
export async function maskFile(picture: PictureSize, marks: readonly MaskMark[]): Promise<Blob> {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: picture.width, height: picture.height });
  drawMarks(canvas, picture, marks);
  const context = contextOf(canvas, picture);
  for (const [operation, colour] of [
    ['source-in', '#fff'],
    ['destination-over', '#000'],
  ] as const) {
    context.globalCompositeOperation = operation;
    context.fillStyle = colour;
    context.fillRect(0, 0, picture.width, picture.height);
  }
  return canvasFile(canvas, 'image/png');
}

export async function canvasFile(canvas: HTMLCanvasElement, type: string): Promise<Blob> {
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, type, 0.95));
  if (blob === null) throw new Error(`the browser makes no ${type} of ${canvas.width} × ${canvas.height} pixels`);
  return blob;
}

/** A mask as the API gives it out, painted where it is white. */
export function maskOfFile(image: ImageBitmap): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: image.width, height: image.height });
  const context = contextOf(canvas, image);
  context.drawImage(image, 0, 0);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < pixels.data.length; at += 4) pixels.data[at + 3] = pixels.data[at]!;
  context.putImageData(pixels, 0, 0);
  context.globalCompositeOperation = 'source-in';
  context.fillRect(0, 0, canvas.width, canvas.height);
  return canvas;
}

function drawStroke(context: CanvasRenderingContext2D, { isEraser, width, points }: Stroke): void {
  context.globalCompositeOperation = isEraser ? 'destination-out' : 'source-over';
  context.lineWidth = width;
  const [first] = points as [Point, ...Point[]];
  context.beginPath();
  // A line of no length is drawn by some browsers only.
  context.arc(first.x, first.y, width / 2, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
  for (const { x, y } of points) context.lineTo(x, y);
  context.stroke();
}

/** In the picture's pixels, and with nothing left of what was set before. */
function contextOf(canvas: HTMLCanvasElement, { width, height }: PictureSize): CanvasRenderingContext2D {
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (context === null) throw new Error('the browser draws nothing');
  context.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
  context.globalCompositeOperation = 'source-over';
  context.fillStyle = context.strokeStyle = ink;
  context.lineCap = context.lineJoin = 'round';
  return context;
}

import type { MaskMark, Point } from './mask-history.ts';

/** Pixels. */
export interface ImageSize {
  width: number;
  height: number;
}

type Stroke = Extract<MaskMark, { kind: 'stroke' }>;

/** The mask's color, visible on any image, like a darkroom's safelight. */
const ink = '#ff4a2a';
/** Longest side of the shown canvas in pixels: sharp on large screens, fast on phones. */
const shownLongestSide = 1024;

/** Sizes a canvas for the mask of an image of that size. The canvas is opaque in painted areas. */
export function prepareCanvas(canvas: HTMLCanvasElement, { width, height }: ImageSize): void {
  const scale = shownLongestSide / Math.max(width, height);
  canvas.width = Math.max(1, Math.round(width * scale));
  canvas.height = Math.max(1, Math.round(height * scale));
}

/** Clears the canvas and draws all marks. */
export function drawMarks(canvas: HTMLCanvasElement, image: ImageSize, marks: readonly MaskMark[]): void {
  contextOf(canvas, image).clearRect(0, 0, image.width, image.height);
  for (const mark of marks) drawMark(canvas, image, mark);
}

export function drawMark(canvas: HTMLCanvasElement, image: ImageSize, mark: MaskMark): void {
  const context = contextOf(canvas, image);
  const { width, height } = image;
  switch (mark.kind) {
    case 'stroke':
      return drawStroke(context, mark);
    case 'given':
      return context.drawImage(mark.mask, 0, 0, width, height);
    case 'clear':
      return context.clearRect(0, 0, width, height);
    case 'invert':
      // source-out: fills where nothing was painted, and erases the rest.
      context.globalCompositeOperation = 'source-out';
      return context.fillRect(0, 0, width, height);
  }
}

/** Returns the painted share of the canvas, 0 to 1. */
export function paintedShare(canvas: HTMLCanvasElement): number {
  const { data } = contextOf(canvas, canvas).getImageData(0, 0, canvas.width, canvas.height);
  let painted = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at]! >= 128) painted++;
  return painted / (data.length / 4);
}

/** Creates the mask file for the API, in the image's size: white in the area to repaint, black elsewhere. */
export async function maskFile(image: ImageSize, marks: readonly MaskMark[]): Promise<Blob> {
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: image.width, height: image.height });
  drawMarks(canvas, image, marks);
  const context = contextOf(canvas, image);
  for (const [operation, colour] of [
    ['source-in', '#fff'],
    ['destination-over', '#000'],
  ] as const) {
    context.globalCompositeOperation = operation;
    context.fillStyle = colour;
    context.fillRect(0, 0, image.width, image.height);
  }
  return canvasFile(canvas, 'image/png');
}

export async function canvasFile(canvas: HTMLCanvasElement, type: string): Promise<Blob> {
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, type, 0.95));
  if (blob === null) throw new Error(`the browser makes no ${type} of ${canvas.width} × ${canvas.height} pixels`);
  return blob;
}

/** Converts a mask file of the API to a canvas that is painted where the file is white. */
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
  // Only some browsers draw a line of zero length.
  context.arc(first.x, first.y, width / 2, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
  for (const { x, y } of points) context.lineTo(x, y);
  context.stroke();
}

/** Returns the context with image pixels as units and all other settings reset. */
function contextOf(canvas: HTMLCanvasElement, { width, height }: ImageSize): CanvasRenderingContext2D {
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (context === null) throw new Error('the browser draws nothing');
  context.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
  context.globalCompositeOperation = 'source-over';
  context.fillStyle = context.strokeStyle = ink;
  context.lineCap = context.lineJoin = 'round';
  return context;
}

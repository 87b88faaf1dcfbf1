import { itemAt } from '@darkroom/core';
import { sizeText } from '../command/number-text.ts';

const barWidth = 24;
/** Redraw interval, ms. */
const redrawMs = 100;
/** Window over which the speed is averaged, ms. */
const speedWindowMs = 5000;

export interface ProgressOptions {
  write: (text: string) => void;
  /** On a terminal one line is redrawn; otherwise there is one line per file. */
  isTerminal: boolean;
  nowMs?: () => number;
}

/** Progress display of a whole download. */
export class DownloadProgress {
  readonly #options: Required<ProgressOptions>;
  #total = 0;
  #done = 0;
  #file = '';
  #drawnAtMs = -Infinity;
  /** Bytes received at some times within the speed window. */
  #samples: { atMs: number; bytes: number }[] = [];
  #received = 0;

  constructor(options: ProgressOptions) {
    this.#options = { nowMs: () => performance.now(), ...options };
  }

  /** Sets the total number of bytes. */
  expect(bytes: number): void {
    this.#total = bytes;
  }

  file(name: string, bytes: number): void {
    this.#file = name;
    if (!this.#options.isTerminal) this.#options.write(`${name} (${sizeText(bytes)})\n`);
  }

  /** Adds bytes. Those of an earlier run count as done, but not for the speed. */
  add(bytes: number, isReceived: boolean): void {
    this.#done += bytes;
    if (isReceived) this.#received += bytes;
    this.#draw();
  }

  /** Writes a message on its own line. */
  report(message: string): void {
    const { write, isTerminal } = this.#options;
    write(`${isTerminal ? '\r\u001b[K' : ''}${message}\n`);
    this.#drawnAtMs = -Infinity;
    this.#draw();
  }

  /** Ends the drawn line. No effect if nothing was drawn, or when called again. */
  end(): void {
    if (this.#drawnAtMs === -Infinity) return;
    this.#drawnAtMs = -Infinity;
    this.#draw();
    this.#drawnAtMs = -Infinity;
    this.#options.write('\n');
  }

  #draw(): void {
    const { write, isTerminal, nowMs } = this.#options;
    const atMs = nowMs();
    if (!isTerminal || this.#total === 0 || atMs - this.#drawnAtMs < redrawMs) return;
    this.#drawnAtMs = atMs;
    this.#samples = [...this.#samples, { atMs, bytes: this.#received }].filter(
      (sample) => atMs - sample.atMs <= speedWindowMs,
    );
    write(`\r\u001b[K${this.#line(atMs)}`);
  }

  #line(atMs: number): string {
    const share = Math.min(1, this.#done / this.#total);
    const filled = Math.round(share * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    const first = itemAt(this.#samples, 0);
    const bytesPerMs = atMs > first.atMs ? (this.#received - first.bytes) / (atMs - first.atMs) : 0;
    const speed = bytesPerMs > 0 ? `  ${sizeText(Math.round(bytesPerMs * 1000))}/s` : '';
    const left = bytesPerMs > 0 ? `  ${durationText((this.#total - this.#done) / bytesPerMs)} left` : '';
    const percent = String(Math.floor(share * 100)).padStart(3);
    return `${bar} ${percent} %  ${sizeText(this.#done)} of ${sizeText(this.#total)}${speed}${left}  ${this.#file}`;
  }
}

function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${String(seconds % 60).padStart(2, '0')}`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

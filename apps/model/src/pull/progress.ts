import { sizeText } from '../number-text.ts';

const barWidth = 24;
/** Often enough to look alive. */
const redrawMs = 100;
/** What the speed is a mean of. */
const speedWindowMs = 5000;

export interface ProgressOptions {
  write: (text: string) => void;
  /** A terminal: one line is drawn again and again. Otherwise there is one for each file. */
  isTerminal: boolean;
  nowMs?: () => number;
}

/** How far the whole of a download is. */
export class Progress {
  readonly #options: Required<ProgressOptions>;
  #total = 0;
  #done = 0;
  #file = '';
  #drawnAtMs = -Infinity;
  /** What had come at some moments of the last seconds. */
  #samples: { atMs: number; bytes: number }[] = [];
  #received = 0;

  constructor(options: ProgressOptions) {
    this.#options = { nowMs: () => performance.now(), ...options };
  }

  /** Bytes that are to come in all. */
  expect(bytes: number): void {
    this.#total = bytes;
  }

  file(name: string, bytes: number): void {
    this.#file = name;
    if (!this.#options.isTerminal) this.#options.write(`${name} (${sizeText(bytes)})\n`);
  }

  /** Bytes of an earlier run count as done, not as speed. */
  add(bytes: number, isReceived: boolean): void {
    this.#done += bytes;
    if (isReceived) this.#received += bytes;
    this.#draw();
  }

  /** A line of its own among what is drawn. */
  say(message: string): void {
    const { write, isTerminal } = this.#options;
    write(`${isTerminal ? '\r\u001b[K' : ''}${message}\n`);
    this.#drawnAtMs = -Infinity;
    this.#draw();
  }

  /** Leaves the terminal as it should be. Does nothing where nothing was drawn, or twice. */
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
    const first = this.#samples[0]!;
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

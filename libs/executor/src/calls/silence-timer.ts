/** The timeout before the first output event is this many times as long. */
const firstEventFactor = 10;

/** Timer that fires when a call stays silent for too long. */
export class SilenceTimer {
  readonly #limitMs: number;
  readonly #onOver: (silentMs: number) => void;
  #hasBegun = false;
  #timer: NodeJS.Timeout;

  /** @param limitMs max silence after the first output event. */
  constructor(limitMs: number, onOver: (silentMs: number) => void) {
    this.#limitMs = limitMs;
    this.#onOver = onOver;
    this.#timer = this.#wait(firstEventFactor * limitMs);
  }

  /** Restarts the timer. `isEvent`: an output event arrived, not only a liveness signal. */
  restart(isEvent: boolean): void {
    if (this.#hasBegun || !isEvent) return void this.#timer.refresh();
    this.#hasBegun = true;
    this.end();
    this.#timer = this.#wait(this.#limitMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #wait(silentMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#onOver(silentMs), silentMs);
  }
}

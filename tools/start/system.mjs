import { say } from './say.mjs';

/**
 * Runs parts until the process is told to stop, then stops them in the given order. A second signal kills them all.
 * However this process ends, its parts end with it.
 */
export class System {
  #parts;
  #sameRequestMs;
  #stopRequestedAtMs;
  #stopRequested;
  #requestStop;

  /**
   * @param sameRequestMs signals this close together count as one: Ctrl-C arrives from the terminal and again from npm
   */
  constructor(parts, { sameRequestMs = 500 } = {}) {
    this.#parts = parts;
    this.#sameRequestMs = sameRequestMs;
    this.#stopRequested = new Promise((resolve) => {
      this.#requestStop = resolve;
    });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => this.requestStop());
    process.on('exit', () => this.#killAll());
  }

  get isStopping() {
    return this.#stopRequestedAtMs !== undefined;
  }

  requestStop() {
    const nowMs = performance.now();
    if (this.#stopRequestedAtMs === undefined) {
      this.#stopRequestedAtMs = nowMs;
      say('stopping; another signal kills all processes');
      this.#requestStop();
    } else if (nowMs - this.#stopRequestedAtMs > this.#sameRequestMs) {
      say('killed all processes');
      process.exit(130);
    }
  }

  /** Starts a part. Resolves when it is ready or when the system stops. */
  async startAndWait(part) {
    part.start();
    await Promise.race([part.ready, this.#stopRequested]);
  }

  async untilStopped() {
    await this.#stopRequested;
    for (const part of this.#parts) await part.stop();
  }

  #killAll() {
    for (const part of this.#parts) part.kill();
  }
}

import { say } from './say.mjs';

/**
 * Runs parts until the process is asked to stop, then stops them in the order given and resolves. A second request
 * kills them all. However this process ends, it takes its parts with it.
 */
export class System {
  #parts;
  #sameRequestMs;
  #stopRequestedAtMs;
  #isToStop;
  #requestStop;

  /**
   * @param sameRequestMs signals this close together are one: a Ctrl-C reaches us from the terminal and again from npm
   */
  constructor(parts, { sameRequestMs = 500 } = {}) {
    this.#parts = parts;
    this.#sameRequestMs = sameRequestMs;
    this.#isToStop = new Promise((resolve) => {
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
      say('stopping; once more to stop at once');
      this.#requestStop();
    } else if (nowMs - this.#stopRequestedAtMs > this.#sameRequestMs) {
      say('stopped at once');
      process.exit(130);
    }
  }

  /** Starts a part and resolves when it is ready, or when the system is to stop. */
  async startAndWait(part) {
    part.start();
    await Promise.race([part.ready, this.#isToStop]);
  }

  async untilStopped() {
    await this.#isToStop;
    for (const part of this.#parts) await part.stop();
  }

  #killAll() {
    for (const part of this.#parts) part.kill();
  }
}

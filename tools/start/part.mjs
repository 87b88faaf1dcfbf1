// A supervised process: it is restarted whenever it ends, until it is stopped.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { say } from './say.mjs';

const defaultTiming = {
  /** The first pause before a restart; it doubles with each death in a row. */
  firstPauseMs: 250,
  longestPauseMs: 10_000,
  /** After being ready for this long, the next pause is the first one again. */
  resetAfterMs: 10_000,
  /** A stop that takes longer becomes a kill. */
  stopTimeoutMs: 25_000,
};

const guard = join(import.meta.dirname, 'guard.sh');

export class Part {
  #options;
  #timing;
  #child;
  #isStopping = new AbortController();
  #running;
  #deathsInARow = 0;
  #announceFirstReady;

  /** Resolves when the part is ready for the first time. */
  ready = new Promise((resolve) => {
    this.#announceFirstReady = resolve;
  });

  /**
   * @param options.name shown in messages
   * @param options.script a Node program; its IPC channel closes when this process ends
   * @param options.args, options.env as for fork
   * @param options.command instead of a script: a program with its arguments; guard.sh ends it when this process ends
   * @param options.prepare called before every start
   * @param options.isReady (child, signal) => Promise that resolves when ready; by default the message `ready`
   */
  constructor({ timing, ...options }) {
    this.#options = options;
    this.#timing = { ...defaultTiming, ...timing };
  }

  get name() {
    return this.#options.name;
  }

  get pid() {
    return this.#child?.pid;
  }

  start() {
    this.#running ??= this.#keepRunning();
  }

  /** Sends SIGTERM and waits for the end; after the timeout sends SIGKILL. Idempotent. */
  async stop() {
    this.#isStopping.abort();
    this.#child?.kill('SIGTERM');
    const timeout = setTimeout(() => this.kill(), this.#timing.stopTimeoutMs);
    await this.#running;
    clearTimeout(timeout);
  }

  /** Kills the process and all its children at once. */
  kill() {
    this.#isStopping.abort();
    this.#killGroup();
  }

  async #keepRunning() {
    const { signal } = this.#isStopping;
    while (!signal.aborted) {
      const readyForMs = await this.#runOnce(signal);
      if (signal.aborted) break;
      if (readyForMs >= this.#timing.resetAfterMs) this.#deathsInARow = 0;
      const { firstPauseMs, longestPauseMs } = this.#timing;
      const pauseMs = Math.min(longestPauseMs, firstPauseMs * 2 ** this.#deathsInARow++);
      say(`restarting ${this.name} in ${pauseMs / 1000} s`);
      await delay(pauseMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Runs the process from one start to its end. Returns how long it was ready, ms. */
  async #runOnce(stopping) {
    const { prepare, isReady = readyMessage } = this.#options;
    const over = new AbortController();
    let readyAtMs = Infinity;
    try {
      await prepare?.();
      if (stopping.aborted) return 0;
      const child = launch(this.#options);
      this.#child = child;
      const ended = once(child, 'exit');
      isReady(child, over.signal).then(
        () => {
          readyAtMs = performance.now();
          this.#announceFirstReady();
        },
        () => {},
      );
      const [code, signal] = await ended;
      if (!stopping.aborted) say(`${this.name} died (${signal ?? `exit code ${code}`})`);
    } catch (error) {
      say(`${this.name} could not be started: ${error.message}`);
    } finally {
      over.abort();
      // The process's own children must not outlive it.
      this.#killGroup();
      this.#child = undefined;
    }
    return Math.max(0, performance.now() - readyAtMs);
  }

  #killGroup() {
    if (this.#child?.pid === undefined) return;
    try {
      process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // The process group is empty.
    }
  }
}

/** Starts the process in its own process group: Ctrl-C reaches only this process, which stops the parts in order. */
function launch({ script, args = [], command, env }) {
  const options = { env, detached: true };
  const output = ['inherit', 'inherit'];
  if (command !== undefined) return spawn('/bin/sh', [guard, ...command], { ...options, stdio: ['pipe', ...output] });
  return fork(script, args, { ...options, execArgv: [], stdio: ['ignore', ...output, 'ipc'] });
}

async function readyMessage(child, signal) {
  for (;;) {
    const [message] = await once(child, 'message', { signal });
    if (message === 'ready') return;
  }
}

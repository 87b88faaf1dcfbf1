import type { ChildProcess } from 'node:child_process';
import type { Duplex } from 'node:stream';
import type { ZodType } from 'zod';
import { encodeFrame, FrameReader } from './frames.ts';
import { type SpawnOptions, spawnChild } from './spawn-child.ts';

export interface ChildOptions<Received> extends SpawnOptions {
  /** Validates each message of the child. A child that sends another one is killed. */
  schema: ZodType<Received>;
  onMessage?: (message: Received) => void;
}

export interface ChildEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** For logs: the exit code or signal, and the reason if it was killed for one. */
  readonly how: string;
  /** The end of what it wrote to stderr, with `stderr: 'tail'`. */
  readonly stderr: string;
}

const maxStderrLength = 2000;
/** Limits of a child's frames: an image of 4096x4096 has 50 MB. */
const frameLimits = { maxHeaderBytes: 16 * 2 ** 20, maxBytes: 256 * 2 ** 20 };
/** Time to read what an ended child has sent, if its own children keep the channel open. */
const drainMs = 1000;

/** Writes chunks in one system call, so that the reader wakes up once. */
function writeTogether(channel: Duplex, chunks: readonly Uint8Array[]): void {
  channel.cork();
  for (const chunk of chunks) channel.write(chunk);
  channel.uncork();
}

/** A child process and the messages to and from it. */
export class Child<Sent extends object, Received> {
  /** Resolves once the process has ended and all of its messages are handled. */
  readonly ended: Promise<ChildEnd>;
  readonly #process: ChildProcess;
  readonly #options: ChildOptions<Received>;
  /** Calls of `next` that wait. */
  readonly #waiting = new Set<(message: Received | undefined) => void>();
  #end: ChildEnd | undefined;
  #reason: string | undefined;
  #lastMessageAtMs = performance.now();

  constructor(options: ChildOptions<Received>) {
    this.#options = options;
    this.#process = spawnChild(options);
    this.#process.on('message', (message: unknown) => this.#receive(message));
    this.#readFrames();
    // Bytes written after the process has ended are lost, and `ended` reports the end.
    this.#process.stdin?.on('error', () => {});
    this.ended = this.#watch();
  }

  /** Process id; undefined if there is no process, or none any more. */
  get pid(): number | undefined {
    return this.#end === undefined ? this.#process.pid : undefined;
  }

  /** How the process ended; undefined while it runs. */
  get how(): string | undefined {
    return this.#end?.how;
  }

  /** Time since the last message, or since the start, ms. */
  get silentMs(): number {
    return performance.now() - this.#lastMessageAtMs;
  }

  /** Sends a message, then bytes to the child's stdin. Has no effect if the process has ended. */
  send(message: Sent, bytes?: Uint8Array): void {
    // Without file descriptors Node starts no process and makes neither `send` nor `stdin`; `ended` reports it.
    const child: Partial<ChildProcess> = this.#process;
    // `ended` reports a closed channel; the callback prevents a throw here too.
    if (this.#frames === undefined) child.send?.(message, () => {});
    else writeTogether(this.#frames, encodeFrame(message));
    if (bytes !== undefined && bytes.byteLength > 0) child.stdin?.write(bytes);
  }

  /**
   * Resolves with the next message; undefined if the process ends first or the signal aborts. Call it first for the
   * message that reports the start.
   */
  next(signal?: AbortSignal): Promise<Received | undefined> {
    return new Promise((resolve) => {
      const settle = (message?: Received): void => {
        this.#waiting.delete(settle);
        signal?.removeEventListener('abort', abort);
        resolve(message);
      };
      const abort = (): void => settle();
      if (this.#end !== undefined || signal?.aborted === true) return resolve(undefined);
      this.#waiting.add(settle);
      signal?.addEventListener('abort', abort);
    });
  }

  /** Kills the process. The first reason given becomes part of how it ended. */
  kill(reason?: string): void {
    this.#reason ??= reason;
    this.#process.kill('SIGKILL');
  }

  /** Makes the first reason given part of how the process will have ended. */
  explainEnd(reason: string): void {
    this.#reason ??= reason;
  }

  /** Sends the message or signal that makes the process end; kills it on timeout. */
  async stop(request: Sent | 'SIGTERM', timeoutMs?: number): Promise<void> {
    if (request === 'SIGTERM') this.#process.kill(request);
    else this.send(request);
    const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.kill(), timeoutMs);
    await this.ended;
    clearTimeout(timer);
  }

  /** Lets this process exit while the child runs. */
  unref(): void {
    for (const handle of [this.#process, this.#process.channel, this.#process.stdin, this.#process.stderr])
      (handle as { unref?(): void } | null | undefined)?.unref?.();
  }

  /** Handles a message; a subclass may override it. */
  protected receive(message: Received): void {
    this.#options.onMessage?.(message);
  }

  /** The channel of a program that is not Node. */
  get #frames(): Duplex | undefined {
    const { stdio } = this.#process as { stdio?: readonly unknown[] };
    return this.#options.interpreter === undefined ? undefined : ((stdio?.[3] ?? undefined) as Duplex | undefined);
  }

  #readFrames(): void {
    const channel = this.#frames;
    if (channel === undefined) return;
    const reader = new FrameReader(frameLimits);
    channel.on('error', () => {});
    channel.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) this.#receive(message);
      } catch (error) {
        // Kill it first: it ends by itself when its channel closes.
        this.kill(`it sent an unexpected message: ${(error as Error).message}`);
        channel.destroy();
      }
    });
    this.#process.once('exit', () => {
      this.#killGroup();
      setTimeout(() => channel.destroy(), drainMs).unref();
    });
  }

  /** Ends the processes that an ended child has started: they could hold its channel, memory and devices. */
  #killGroup(): void {
    const { pid } = this.#process;
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL');
    } catch {
      // There is none.
    }
  }

  #receive(message: unknown): void {
    const parsed = this.#options.schema.safeParse(message);
    if (!parsed.success) return this.kill('it sent an unexpected message');
    this.#lastMessageAtMs = performance.now();
    this.receive(parsed.data);
    for (const settle of this.#waiting) settle(parsed.data);
  }

  #watch(): Promise<ChildEnd> {
    const child = this.#process;
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-maxStderrLength)));
    return new Promise((resolve) => {
      const settle = (end: Pick<ChildEnd, 'code' | 'signal' | 'how'>): void => {
        const how = this.#reason === undefined ? end.how : `${end.how}: ${this.#reason}`;
        this.#end = { ...end, how, stderr: stderr.trim() };
        for (const waiting of this.#waiting) waiting(undefined);
        resolve(this.#end);
      };
      // `close` follows the last message, which may come after `exit`.
      child.once('close', (code, signal) => {
        const how = signal === null ? `exited with code ${String(code)}` : `was killed by ${signal}`;
        settle({ code, signal, how });
      });
      child.on('error', ({ message }) => {
        // Without a pid the process never started. Other errors concern one message, and `close` still follows.
        if (child.pid === undefined) settle({ code: null, signal: null, how: `could not be started: ${message}` });
      });
    });
  }
}

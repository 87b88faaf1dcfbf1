/** A place in the system for one process, which is started again whenever it ends, as an orchestrator would. */
import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { launchPart, type Part, type PartName, type TcpProxy } from '@darkroom/testing/processes';

export interface MemberOptions {
  /** Such as `api-1`. */
  name: string;
  app: PartName;
  environment: Record<string, string>;
  /** That it serves. */
  models: readonly string[];
  /** Its own way to Redis, where there is one Redis. */
  proxy: TcpProxy | undefined;
  logFile: string;
  /** It ended by itself, or not as it was asked to. */
  onCrash: (how: string) => void;
}

export class Member {
  readonly name: string;
  readonly app: PartName;
  readonly proxy: TcpProxy | undefined;
  /** What the next starts get in addition. */
  extra: Record<string, string> = {};
  /** Whose build the next starts are of; this repository's otherwise. */
  root: string | undefined;
  /** A fault has it. */
  isBusy = false;
  readonly #options: MemberOptions;
  #part: Part;
  #life = 0;
  #downMs = 0;
  /** It was told to end. */
  #isExpected = false;
  #isReady = false;
  #isExcused = false;
  #isStopped = false;
  readonly #keeping: Promise<void>;

  constructor(options: MemberOptions) {
    this.#options = options;
    this.name = options.name;
    this.app = options.app;
    this.proxy = options.proxy;
    this.#part = this.#launch();
    this.#keeping = this.#keep();
  }

  get pid(): number {
    return this.#part.process.pid!;
  }

  get ready(): Promise<void> {
    return this.#part.ready;
  }

  get isRunning(): boolean {
    return this.#part.process.exitCode === null && this.#part.process.signalCode === null;
  }

  /** What it is registered as; each of its lives as another. */
  get workers(): { model: string; id: string }[] {
    const { models } = this.#options;
    return models.map((model) => ({ model, id: models.length > 1 ? `${this.#lifeName}-${model}` : this.#lifeName }));
  }

  get #lifeName(): string {
    return `${this.name}.${this.#life}`;
  }

  /** Processes that it has started: engines. */
  get children(): number[] {
    try {
      return execFileSync('pgrep', ['-P', `${this.pid}`], { encoding: 'utf8' })
        .trim()
        .split('\n')
        .map(Number);
    } catch {
      return [];
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#part.process.kill(signal);
  }

  /** Ends it, and has it started again after so long. */
  async end(signal: 'SIGKILL' | 'SIGTERM', downMs: number): Promise<void> {
    this.#downMs = downMs;
    this.#isExpected = true;
    await (signal === 'SIGKILL' ? this.#part.kill() : this.#part.stop());
    await delay(downMs);
  }

  /** What it needs goes: where it was not ready before, it may end with an error. */
  excuse(): void {
    this.#isExcused ||= !this.#isReady;
  }

  /** For ever. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#part.stop();
    await this.#keeping;
    this.proxy?.stop();
  }

  #launch(): Part {
    this.#life += 1;
    const { environment, logFile } = this.#options;
    const all = { ...environment, WORKER_ID: this.#lifeName, ...this.extra };
    const part = launchPart(this.app, all, logFile, this.root === undefined ? {} : { root: this.root });
    this.#isReady = false;
    this.#isExcused = false;
    void part.ready.then(
      () => (this.#isReady = true),
      () => {},
    );
    return part;
  }

  async #keep(): Promise<void> {
    while (!this.#isStopped) {
      const { process: child } = this.#part;
      await new Promise<void>((resolve) => void (this.isRunning ? child.once('exit', () => resolve()) : resolve()));
      if (this.#isStopped) return;
      // Asked to, it ends with 0, or by the signal while it does not listen yet.
      const isFine = this.#isExcused || (this.#isExpected && (child.exitCode === null || child.exitCode === 0));
      if (!isFine)
        this.#options.onCrash(`${child.signalCode ?? `exit ${child.exitCode}`} ${this.#part.stderr.slice(-300)}`);
      await delay(this.#isExpected ? this.#downMs : 500);
      this.#isExpected = false;
      // It may have been stopped meanwhile.
      if (!(this.#isStopped as boolean)) this.#part = this.#launch();
    }
  }
}

/** A supervised process of the system, restarted whenever it exits, as an orchestrator would. */
import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { launchPart, type Part, type PartName, type TcpProxy } from '@darkroom/testing/processes';

export interface MemberOptions {
  /** For example `api-1`. */
  name: string;
  app: PartName;
  environment: Record<string, string>;
  /** Models that the process serves; empty unless it is a worker. */
  models: readonly string[];
  /** Proxy between the process and Redis; undefined with several Redis servers. */
  proxy: TcpProxy | undefined;
  logFile: string;
  /** Called when the process exits unexpectedly or with an error. */
  onCrash: (how: string) => void;
}

export class Member {
  readonly name: string;
  readonly app: PartName;
  readonly proxy: TcpProxy | undefined;
  /** Additional environment of the next starts. */
  extraEnvironment: Record<string, string> = {};
  /** Checkout whose build the next starts use; undefined: this one. */
  root: string | undefined;
  /** True while a fault hits the member. */
  hasFault = false;
  readonly #options: MemberOptions;
  #part: Part;
  #generation = 0;
  #downMs = 0;
  /** True while an exit is expected. */
  #isExpected = false;
  #isReady = false;
  #mayFail = false;
  #isStopped = false;
  readonly #supervision: Promise<void>;

  constructor(options: MemberOptions) {
    this.#options = options;
    this.name = options.name;
    this.app = options.app;
    this.proxy = options.proxy;
    this.#part = this.#launch();
    this.#supervision = this.#supervise();
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

  /** Workers under which the current process is registered; the ids differ after each restart. */
  get workers(): { model: string; id: string }[] {
    const { models } = this.#options;
    return models.map((model) => ({ model, id: models.length > 1 ? `${this.#workerId}-${model}` : this.#workerId }));
  }

  get #workerId(): string {
    return `${this.name}.${this.#generation}`;
  }

  /** Pids of child processes: engines and modules. */
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

  /** Ends the process and restarts it after `downMs`. */
  async end(signal: 'SIGKILL' | 'SIGTERM', downMs: number): Promise<void> {
    this.#downMs = downMs;
    this.#isExpected = true;
    await (signal === 'SIGKILL' ? this.#part.kill() : this.#part.stop());
    await delay(downMs);
  }

  /** Allows the process to exit with an error if it is not ready yet, because a fault hits its engine. */
  allowErrorExit(): void {
    this.#mayFail ||= !this.#isReady;
  }

  /** Stops the process without restarting it. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#part.stop();
    await this.#supervision;
    this.proxy?.stop();
  }

  #launch(): Part {
    this.#generation += 1;
    const { environment, logFile } = this.#options;
    const all = { ...environment, WORKER_ID: this.#workerId, ...this.extraEnvironment };
    const part = launchPart(this.app, all, logFile, this.root === undefined ? {} : { root: this.root });
    this.#isReady = false;
    this.#mayFail = false;
    void part.ready.then(
      () => (this.#isReady = true),
      () => {},
    );
    return part;
  }

  async #supervise(): Promise<void> {
    while (!this.#isStopped) {
      const { process: child } = this.#part;
      await new Promise<void>((resolve) => void (this.isRunning ? child.once('exit', () => resolve()) : resolve()));
      if (this.#isStopped) return;
      // An expected exit has status 0, or the signal if the process has no handler yet.
      const isFine = this.#mayFail || (this.#isExpected && (child.exitCode === null || child.exitCode === 0));
      if (!isFine)
        this.#options.onCrash(`${child.signalCode ?? `exit ${child.exitCode}`} ${this.#part.stderr.slice(-300)}`);
      await delay(this.#isExpected ? this.#downMs : 500);
      this.#isExpected = false;
      // `stop` may have been called meanwhile.
      if (!(this.#isStopped as boolean)) this.#part = this.#launch();
    }
  }
}

import type { OnnxSession } from '@darkroom/runtime';

/** A graph that can be unloaded and is loaded again on its next call. */
export class ReloadableSession implements OnnxSession {
  readonly device: OnnxSession['device'];
  readonly refusals: OnnxSession['refusals'];
  readonly inputs: OnnxSession['inputs'];
  readonly outputs: OnnxSession['outputs'];
  readonly #load: () => Promise<OnnxSession>;
  #session: Promise<OnnxSession> | undefined;
  #calls = 0;
  #isDisposeRequested = false;

  /**
   * @param load loads the graph again. If it fails, the call that needs the graph fails too, and the next call tries
   * again.
   */
  constructor(loaded: OnnxSession, load: () => Promise<OnnxSession>) {
    ({ device: this.device, refusals: this.refusals, inputs: this.inputs, outputs: this.outputs } = loaded);
    this.#load = load;
    this.#session = Promise.resolve(loaded);
  }

  get isLoaded(): boolean {
    return this.#session !== undefined;
  }

  /** Frees the graph as soon as no call is running. */
  async dispose(): Promise<void> {
    this.#isDisposeRequested = true;
    if (this.#calls > 0) return;
    const dropped = this.#session;
    this.#session = undefined;
    await (await dropped)?.dispose();
  }

  run: OnnxSession['run'] = (feeds, output) => this.#use((open) => open.run(feeds, output));
  runForAll: OnnxSession['runForAll'] = (feeds, names, into) => this.#use((open) => open.runForAll(feeds, names, into));
  countNodes: OnnxSession['countNodes'] = () => this.#use((open) => open.countNodes());

  async #use<Result>(work: (session: OnnxSession) => Promise<Result>): Promise<Result> {
    this.#calls += 1;
    this.#isDisposeRequested = false;
    try {
      this.#session ??= this.#load();
      return await work(
        await this.#session.catch((error: unknown) => {
          this.#session = undefined;
          throw error;
        }),
      );
    } finally {
      this.#calls -= 1;
      if (this.#isDisposeRequested) await this.dispose();
    }
  }
}

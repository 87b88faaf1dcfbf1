import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { engineModule } from './engine/grammar-engine.ts';
import type {
  GrammarAnswer,
  GrammarModule,
  GrammarQuestion,
  GrammarThreadData,
  GrammarVocabulary,
} from './engine/grammar-message.ts';

// Always the built entry: Node does not run TypeScript. Run `npm run build` before tests of the sources.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../../dist/text/grammar' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/grammar-thread.js`, import.meta.url));

/** The stack is large because the engine recurses over the properties of a schema. */
const resourceLimits = { stackSizeMb: 24, maxOldGenerationSizeMb: 128 };

export interface ThreadLinkOptions {
  readonly vocabulary: GrammarVocabulary | undefined;
  readonly maxBytes: number;
  readonly onAnswer: (answer: GrammarAnswer) => void;
  /** Called if the thread ends on its own. */
  readonly onEnd: () => void;
}

/** A running grammar thread. */
export class ThreadLink {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  #onAnswer: ThreadLinkOptions['onAnswer'] | undefined;
  /** Questions that wait for the engine's module. */
  #queued: GrammarQuestion[] | undefined = [];

  constructor({ vocabulary, maxBytes, onAnswer, onEnd }: ThreadLinkOptions) {
    const { port1, port2 } = new MessageChannel();
    const workerData: GrammarThreadData = { port: port2, vocabulary, maxBytes };
    // Do not inherit flags of this process, such as a test's resolve conditions.
    this.#worker = new Worker(entry, { workerData, transferList: [port2], execArgv: [], resourceLimits });
    this.#port = port1;
    this.#onAnswer = onAnswer;
    port1.on('message', (answer: GrammarAnswer) => this.#onAnswer?.(answer));
    const end = () => this.#onAnswer !== undefined && onEnd();
    this.#worker.once('error', end);
    this.#worker.once('exit', end);
    this.#worker.unref();
    void engineModule().then((module) => this.#start({ type: 'module', module }), end);
  }

  post(question: GrammarQuestion): void {
    if (this.#queued === undefined) this.#port.postMessage(question, []);
    else this.#queued.push(question);
  }

  #start(module: GrammarModule): void {
    this.#port.postMessage(module, []);
    for (const question of this.#queued ?? []) this.#port.postMessage(question, []);
    this.#queued = undefined;
  }

  /** Reads the answers that have arrived, synchronously. */
  listen(): void {
    for (let received = receiveMessageOnPort(this.#port); received; received = receiveMessageOnPort(this.#port))
      this.#onAnswer?.(received.message as GrammarAnswer);
  }

  /** Sets whether the process stays alive for the thread's answers. */
  keepAlive(isAwaited: boolean): void {
    if (isAwaited) this.#port.ref();
    else this.#port.unref();
  }

  /** Ends the thread; no callback is called any more. */
  async end(): Promise<void> {
    this.#onAnswer = undefined;
    this.#port.close();
    await this.#worker.terminate();
  }
}

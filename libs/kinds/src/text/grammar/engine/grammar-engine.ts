import { readFileSync } from 'node:fs';
import { GrammarProblem } from '../schema/grammar-problem.ts';
import { WebAssembly, type WebAssemblyMemory, type WebAssemblyModule } from './web-assembly.ts';

/** Exported functions of tools/grammar-engine. */
interface EngineExports {
  allocate(length: number): number;
  release(pointer: number, length: number): void;
  bytes_in_use(): number;
  create_engine(lengths: number, count: number, bytes: number, end: number, sliced: number): void;
  set_limits(
    initialFuel: number,
    stepFuel: number,
    lexerStates: number,
    grammarSize: number,
    stepItems: number,
    rowItems: number,
  ): void;
  message_pointer(): number;
  message_length(): number;
  compile(source: number, length: number): number;
  drop_grammar(grammar: number): void;
  open(grammar: number): number;
  close(matcher: number): void;
  accept(matcher: number, token: number): number;
  mask(matcher: number, words: number, count: number): number;
}

/** Bytes of tokens by id, empty for tokens without text. `end`: id of the end token. */
export interface EngineVocabulary {
  readonly tokens: readonly Uint8Array[];
  readonly end: number;
}

const pageBytes = 65_536;
/** Minimum memory pages of the module. */
const initialPages = 320;
/** Limits for compiling one grammar and computing one mask: about 50 ms and 100 ms of CPU. */
const limits = [2_000_000, 300_000, 30_000, 500_000, 1_000_000, 25_000] as const;

// The path works from src and from dist: the file is only in src.
const file = new URL('../../../../src/text/grammar/engine/grammar-engine.wasm', import.meta.url);
let compiled: Promise<WebAssemblyModule> | undefined;

/** Returns the engine's module, compiled once per process, off the event loop; threads share it. */
export function engineModule(): Promise<WebAssemblyModule> {
  compiled ??= WebAssembly.compile(readFileSync(file));
  return compiled;
}

/** llguidance with one vocabulary, in its own memory. Any error other than a `GrammarProblem` leaves it unusable. */
export class GrammarEngine {
  readonly #exports: EngineExports;
  readonly #memory: WebAssemblyMemory;
  readonly #maxBytes: number;
  readonly #mask: number;
  readonly #words: number;

  constructor(module: WebAssemblyModule, { tokens, end }: EngineVocabulary, maxBytes: number, sliced: boolean) {
    this.#maxBytes = maxBytes;
    this.#memory = new WebAssembly.Memory({ initial: initialPages, maximum: Math.floor(maxBytes / pageBytes) });
    const imports = { env: { memory: this.#memory, now: () => performance.now() } };
    this.#exports = new WebAssembly.Instance(module, imports).exports as unknown as EngineExports;
    const bytes = tokens.reduce((sum, token) => sum + token.length, 0);
    const [lengthsAt, bytesAt] = [this.#exports.allocate(tokens.length * 4), this.#exports.allocate(bytes)];
    new Uint32Array(this.#memory.buffer, lengthsAt, tokens.length).set(tokens.map(({ length }) => length));
    let at = bytesAt;
    for (const token of tokens) {
      new Uint8Array(this.#memory.buffer, at, token.length).set(token);
      at += token.length;
    }
    this.#exports.create_engine(lengthsAt, tokens.length, bytesAt, end, sliced ? 1 : 0);
    this.#exports.release(lengthsAt, tokens.length * 4);
    this.#exports.release(bytesAt, bytes);
    this.#exports.set_limits(...limits);
    this.#words = Math.ceil(tokens.length / 32);
    this.#mask = this.#exports.allocate(this.#words * 4);
  }

  get bytesInUse(): number {
    return this.#exports.bytes_in_use();
  }

  /** True if memory is too full for another grammar. */
  get isFull(): boolean {
    return this.bytesInUse > 0.7 * this.#maxBytes;
  }

  /** Compiles a grammar; returns its handle. @throws GrammarProblem with the engine's message. */
  compile(lark: string): number {
    const source = new TextEncoder().encode(lark);
    const pointer = this.#exports.allocate(source.length);
    new Uint8Array(this.#memory.buffer, pointer, source.length).set(source);
    const grammar = this.#exports.compile(pointer, source.length);
    this.#exports.release(pointer, source.length);
    if (grammar < 0) throw this.#problem();
    return grammar;
  }

  drop(grammar: number): void {
    this.#exports.drop_grammar(grammar);
  }

  /** Opens a matcher at the start of a text; returns its handle. */
  open(grammar: number): number {
    return this.#exports.open(grammar);
  }

  close(matcher: number): void {
    this.#exports.close(matcher);
  }

  /** Appends a token. @throws GrammarProblem if the grammar does not allow it, or a limit is exceeded. */
  accept(matcher: number, token: number): void {
    const accepted = this.#exports.accept(matcher, token);
    if (accepted < 0) throw this.#problem();
    if (accepted === 0) throw new GrammarProblem('a token does not fit its grammar');
  }

  /** Returns the bit mask of allowed tokens, with the end token if the text may end. @throws GrammarProblem */
  mask(matcher: number): Int32Array {
    if (this.#exports.mask(matcher, this.#mask, this.#words) < 0) throw this.#problem();
    return new Int32Array(this.#memory.buffer, this.#mask, this.#words).slice();
  }

  #problem(): GrammarProblem {
    const [pointer, length] = [this.#exports.message_pointer(), this.#exports.message_length()];
    const message = new TextDecoder().decode(new Uint8Array(this.#memory.buffer, pointer, length));
    return new GrammarProblem(plainMessage(message));
  }
}

/** Returns the engine's message without the source excerpt; rewords limits. */
function plainMessage(message: string): string {
  const [line = ''] = message.replace('<non-verbose/>', '').split('\n', 1);
  if (/too many|too large|too complex|fuel|exceed|limit/iu.test(line)) return `it is too complex: ${line}`;
  if (/NoExtension/u.test(line)) return 'it allows no text';
  return line.replace(/^(?:at \d+\(\d+\): )?(?:failed to compile JSON schema: )?/u, '');
}

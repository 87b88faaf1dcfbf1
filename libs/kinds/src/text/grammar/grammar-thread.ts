/** Entry of the threads that compile grammars and match texts. */
import { itemAt } from '@darkroom/core';
import { type MessagePort, workerData } from 'node:worker_threads';
import { createTextCodec } from '../codec/text-codec.ts';
import type { TextConstraint } from '../form/text-input.ts';
import { constraintToLark } from './constraint/constraint-lark.ts';
import { GrammarProblem } from './schema/grammar-problem.ts';
import { GrammarEngine, type EngineVocabulary } from './engine/grammar-engine.ts';
import { Matchers } from './engine/matchers.ts';
import type {
  GrammarAnswer,
  GrammarModule,
  GrammarQuestion,
  GrammarThreadData,
  GrammarVocabulary,
} from './engine/grammar-message.ts';
import { kernelThreadId } from './thread-cpu.ts';

const { port, vocabulary, maxBytes } = workerData as GrammarThreadData;

/** Tokens that a check generates: some limits are only reached while a text is matched. */
const testTokens = 48;

const bytesOnly: EngineVocabulary = {
  tokens: Array.from({ length: 257 }, (_, byte) => (byte < 256 ? Uint8Array.of(byte) : new Uint8Array(0))),
  end: 256,
};

const warmUp: TextConstraint = {
  type: 'json_schema',
  json_schema: { type: 'object', properties: { a: { type: 'number', minimum: 0 }, b: { pattern: '^[a-z]{2,9}$' } } },
};

let module: GrammarModule['module'];
let matchers: Matchers | undefined;

function create(): Matchers {
  const { tokens, endIds } = vocabulary === undefined ? { ...bytesOnly, endIds: [256] } : tokensOf(vocabulary);
  const end = itemAt(endIds, 0);
  return new Matchers(new GrammarEngine(module, { tokens, end }, maxBytes, vocabulary !== undefined), endIds);
}

function tokensOf({ codecDocument, endIds: known }: GrammarVocabulary) {
  const codec = createTextCodec(codecDocument);
  // If the model has no end token, use an id beyond the vocabulary.
  const endIds = known.length > 0 ? known : [codec.vocabularySize];
  const isText = (id: number) => id < codec.vocabularySize && !codec.isSpecial(id) && !endIds.includes(id);
  const length = Math.max(codec.vocabularySize, Math.max(...endIds) + 1);
  const tokens = Array.from({ length }, (_, id) => (isText(id) ? codec.bytesOf(id) : new Uint8Array(0)));
  return { tokens, endIds };
}

function answer(question: GrammarQuestion): GrammarAnswer {
  matchers ??= create();
  switch (question.type) {
    case 'start':
      // The first grammar is slow: V8 compiles the engine while it runs.
      matchers.tryOut(constraintToLark(warmUp).lark, testTokens);
      return { type: 'done', threadId: kernelThreadId() };
    case 'check': {
      const from = performance.now();
      const { lark, isRecursive } = larkOf(question.source);
      matchers.tryOut(lark, testTokens);
      return { type: 'checked', ms: performance.now() - from, isRecursive };
    }
    case 'open':
      matchers.open(question.matcher, question.source, () => larkOf(question.source).lark);
      for (const id of question.ids) matchers.accept(question.matcher, id);
      return { type: 'allowed', allowed: matchers.allowed(question.matcher) };
    case 'accept':
      matchers.accept(question.matcher, question.id);
      return { type: 'allowed', allowed: matchers.allowed(question.matcher) };
    case 'close':
      matchers.close(question.matcher);
      return { type: 'done' };
  }
}

function larkOf(source: string): ReturnType<typeof constraintToLark> {
  return constraintToLark(JSON.parse(source) as TextConstraint);
}

function receive(to: MessagePort, question: GrammarQuestion): void {
  let response: GrammarAnswer;
  try {
    response = answer(question);
  } catch (error) {
    const isProblem = error instanceof GrammarProblem;
    // A WebAssembly trap, out of memory or stack overflow: the engine's state is lost.
    response = { type: 'refused', problem: isProblem ? error.message : 'it is too complex', isBroken: !isProblem };
  }
  to.postMessage(response, response.type === 'allowed' ? [response.allowed.words.buffer as ArrayBuffer] : []);
}

port.on('message', (message: GrammarQuestion | GrammarModule) => {
  if (message.type === 'module') ({ module } = message);
  else receive(port, message);
});

/** The entry of the thread in which grammars are read, and texts are matched: some of that takes seconds. */
import { type MessagePort, workerData } from 'node:worker_threads';
import type { CompiledGrammar, GrammarCompiler, GrammarMatcher } from '@mlc-ai/web-xgrammar';
import { createTextCodec } from '../codec/text-codec.ts';
import type { TextConstraint } from '../text-input.ts';
import type { AllowedTokens, GrammarAnswer, GrammarQuestion, GrammarThreadData } from './grammar-message.ts';
import { sealedGrammar } from './sealed-grammar.ts';
import { loadXgrammar } from './xgrammar.ts';

/** Grammars that are kept for others that ask for the same: the least recently used goes. */
const keptGrammars = 16;

const { port, vocabulary } = workerData as GrammarThreadData;
const { library, takeFailure } = loadXgrammar();
const compiled = new Map<string, CompiledGrammar>();
const matchers = new Map<number, GrammarMatcher>();
/** Bytes of each token by its id; special ones have none, since they are no text and never part of what is allowed. */
let tokens: Uint8Array[] = [];
let isEndId = new Set<number>();
let compiler: Promise<GrammarCompiler> | undefined;

async function createCompiler(): Promise<GrammarCompiler> {
  const { codecDocument, endIds } = vocabulary!;
  const codec = createTextCodec(codecDocument);
  // Where no token ends a text, one that there is not stands for the end.
  isEndId = new Set(endIds.length > 0 ? endIds : [codec.vocabularySize]);
  const isText = (id: number) => id < codec.vocabularySize && !codec.isSpecial(id) && !isEndId.has(id);
  const length = Math.max(codec.vocabularySize, Math.max(...isEndId) + 1);
  tokens = Array.from({ length }, (_, id) => (isText(id) ? codec.bytesOf(id) : new Uint8Array(0)));
  // The binding takes a string's bytes as well, which its types do not say.
  const texts = tokens as unknown as string[];
  const info = await library.TokenizerInfo.createTokenizerInfo(texts, 'raw', false, tokens.length, [...isEndId]);
  // Its own cache knows no bound.
  return library.GrammarCompiler.createGrammarCompiler(info, false);
}

async function compile(constraint: TextConstraint): Promise<CompiledGrammar> {
  const key = JSON.stringify(constraint);
  const grammar = compiled.get(key) ?? (await compileSealed(await compiler!, constraint));
  compiled.delete(key);
  compiled.set(key, grammar);
  const [oldest] = compiled.keys();
  if (compiled.size > keptGrammars && oldest !== undefined) {
    compiled.get(oldest)!.dispose();
    compiled.delete(oldest);
  }
  return grammar;
}

async function compileSealed(compiler: GrammarCompiler, constraint: TextConstraint): Promise<CompiledGrammar> {
  const read = await library.Grammar.fromStructuralTag(constraint);
  const { text, root } = sealedGrammar(read.toString());
  read.dispose();
  return compiler.compileGrammar(text, root);
}

async function allowedBy(matcher: GrammarMatcher): Promise<AllowedTokens> {
  const words = await matcher.getNextTokenBitmask();
  // Beyond the last token all bits are set.
  const beyond = tokens.length & 31;
  if (beyond > 0) words[words.length - 1]! &= (1 << beyond) - 1;
  const mayEnd = [...isEndId].some((id) => (words[id >> 5]! >> (id & 31)) & 1);
  const isEnd = mayEnd && words.every((word, at) => word === 0 || hasOnlyEnds(word, at));
  return { words, isEnd };
}

function hasOnlyEnds(word: number, at: number): boolean {
  for (let bit = 0; bit < 32; bit++) if ((word >> bit) & 1 && !isEndId.has(32 * at + bit)) return false;
  return true;
}

async function answer(question: GrammarQuestion): Promise<GrammarAnswer> {
  switch (question.type) {
    case 'start':
      if (vocabulary !== undefined) compiler = createCompiler();
      await compiler;
      return { type: 'done' };
    case 'check': {
      const grammar = await library.Grammar.fromStructuralTag(question.constraint);
      grammar.dispose();
      return { type: 'done' };
    }
    case 'open': {
      const grammar = await compile(question.constraint);
      const matcher = await library.GrammarMatcher.createGrammarMatcher(grammar);
      matchers.set(question.matcher, matcher);
      for (const id of question.ids) if (!matcher.acceptToken(id)) return refused('a token does not fit its grammar');
      return { type: 'allowed', allowed: await allowedBy(matcher) };
    }
    case 'accept': {
      const matcher = matchers.get(question.matcher)!;
      if (!matcher.acceptToken(question.id)) return refused('a token does not fit its grammar');
      return { type: 'allowed', allowed: await allowedBy(matcher) };
    }
    case 'close':
      matchers.get(question.matcher)?.dispose();
      matchers.delete(question.matcher);
      return { type: 'done' };
  }
}

function refused(problem: string, isBroken = false): GrammarAnswer {
  return { type: 'refused', problem, isBroken };
}

async function receive(to: MessagePort, question: GrammarQuestion): Promise<void> {
  // After a failure an instance is of no use.
  const said = await answer(question).catch(() => refused(takeFailure() || 'it cannot be read', true));
  to.postMessage(said, said.type === 'allowed' ? [said.allowed.words.buffer as ArrayBuffer] : []);
}

let turn = Promise.resolve();
port.on('message', (question: GrammarQuestion) => {
  turn = turn.then(() => receive(port, question));
});

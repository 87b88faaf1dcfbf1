/** Tests constrained texts. The matcher runs built code in a thread: `npm run build` first. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { TextConstraint, TextInput, TokenLogprob } from '@darkroom/kinds';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import {
  differenceOf,
  writeInBatches,
  randomInput,
  textInput,
  type TextResult,
  TextTable,
} from '../testing/text-table.ts';
import { loadTextPipeline } from './load-text-pipeline.ts';
import type { TextPipeline } from './text-pipeline.ts';

const root = resolve(import.meta.dirname, '../../../..');
const directory = resolve(root, 'models/emoji-writer');
const { codec } = await readTextModelDirectory(directory);
const [{ prompt }] = (
  JSON.parse(readFileSync(resolve(root, 'tools/golden/vectors/emoji-writer-greedy.json'), 'utf8')) as {
    cases: [{ prompt: number[] }];
  }
).cases;
const end = 2;

const schema = {
  type: 'object',
  properties: {
    animal: { type: 'string', maxLength: 12 },
    count: { type: 'integer', minimum: 1, maximum: 20 },
    colours: { type: 'array', items: { enum: ['red', 'green', 'blue'] }, minItems: 1, maxItems: 3 },
  },
  required: ['animal', 'count', 'colours'],
};
const ebnf = (grammar: string): TextConstraint => ({ type: 'grammar', grammar });
const ofSchema: TextConstraint = { type: 'json_schema', json_schema: schema };
const fits = new Ajv2020().compile(schema);

let pipeline: TextPipeline;
beforeAll(async () => {
  pipeline = await loadTextPipeline({ directory, threads: 1, stepTokens: 16 });
});
afterAll(() => pipeline.dispose());

const write = (changes: Partial<TextInput>) => new TextTable(pipeline).write(textInput({ prompt, ...changes }));
const logprobsOf = ({ events }: TextResult) =>
  events
    .flatMap((event) => (event.type === 'delta' ? (event.facts!['logprobs'] as string).trimEnd().split('\n') : []))
    .map((line) => JSON.parse(line) as TokenLogprob);

describe('a text with a constraint', () => {
  it('follows its schema, and ends where that ends', async () => {
    for (let seed = 0; seed < 6; seed++) {
      const { text, tokens, facts } = await write({
        constraint: ofSchema,
        temperature: seed / 4,
        seed,
        maxTokens: 200,
      });
      expect(fits(JSON.parse(text)), `${text} is of the schema`).toBe(true);
      expect(facts).toMatchObject({ finish_reason: 'stop', completion_tokens: tokens.length, calls: tokens.length });
      expect(tokens).not.toContain(end);
    }
  });

  it('may end with the end token only where the grammar may end', async () => {
    const { text, tokens } = await write({
      constraint: ebnf('root ::= "xyz" | "xyz" root'),
      logitBias: { [end]: 100 },
    });
    expect(text).toBe('xyz');
    expect(tokens.at(-1)).toBe(end);
  });

  it('contains no token that a bias favours and the grammar forbids', async () => {
    const constraint = ebnf('root ::= [ab]{5}');
    const logitBias = Object.fromEntries(codec.encode('fox', { addSpecialTokens: false }).map((id) => [id, 100]));
    expect((await write({ constraint, logitBias })).text).toMatch(/^[ab]{5}$/u);
  });

  it('reports log probabilities without the constraint', async () => {
    const plain = logprobsOf(await write({ logprobs: 3, maxTokens: 2 }));
    const constrained = await write({ constraint: ebnf('root ::= "q" [a-z]{3}'), logprobs: 3 });
    const logprobs = logprobsOf(constrained);
    expect(logprobs[0]!.top).toEqual(plain[0]!.top);
    expect(logprobs[0]!.logprob).toBeLessThan(logprobs[0]!.top[2]!.logprob);
    expect(logprobs.map(({ token }) => token).join('')).toBe(constrained.text);
  });

  it('ends before a stop string, and at its limit', async () => {
    const constraint = ebnf('root ::= "abcdef"');
    expect(await write({ constraint, stop: ['de'] })).toMatchObject({
      text: 'abc',
      facts: { finish_reason: 'stop', stop: 'de' },
    });
    expect((await write({ constraint: ofSchema, maxTokens: 2 })).facts).toMatchObject({ finish_reason: 'length' });
  });

  it('is empty if the grammar allows nothing else', async () => {
    expect(await write({ constraint: ebnf('root ::= ""') })).toMatchObject({
      text: '',
      tokens: [],
      facts: { calls: 0 },
    });
  });

  it('follows tags between free text', async () => {
    const content = ebnf('root ::= "{" [a-c]{2} "}"');
    const tags = [{ type: 'tag', begin: 'a', content, end: '!' } as const];
    const constraint: TextConstraint = { type: 'triggered_tags', trigger: 'a', tags, stop_after_first: false };
    for (let seed = 0; seed < 6; seed++) {
      const { text } = await write({ constraint, temperature: 1, seed, maxTokens: 60 });
      // The limit may truncate the last one.
      expect(text.replaceAll(/a(\{[a-c]{2}\}!|(\{[a-c]{0,2}\}?)?$)/gu, '')).not.toContain('a');
    }
  });
});

/** Returns a request determined by the number; two of three have a constraint. */
function inputOf(number: number): TextInput {
  const input = { ...randomInput(number, prompt), logprobs: 2 };
  if (number % 3 === 0) return input;
  return {
    ...input,
    ignoreEos: false,
    constraint: number % 3 === 1 ? ofSchema : ebnf(`root ::= "${number}" [^q]* "."`),
  };
}

describe('rows with constraints', () => {
  it('have the same bytes in any batch as alone, like those without, and from every checkpoint', async () => {
    const alone: TextResult[] = [];
    for (let at = 0; at < 30; at++) alone.push(await new TextTable(pipeline).write(inputOf(at)));
    for (let round = 0; round < 2; round++) {
      const together = await writeInBatches(pipeline, { seed: round, inputOf, alone });
      expect(together.map((one, at) => differenceOf(one, alone[at]!))).toEqual(alone.map(() => ''));
    }
  });

  it('resume from a checkpoint after each token', async () => {
    const constraint = ebnf('root ::= "{" [a-z]{6} ("," [0-9]{2}){3} "}"');
    const input = textInput({ prompt, constraint, temperature: 1, seed: 3, maxTokens: 80, logprobs: 0 });
    const whole = await new TextTable(pipeline).write(input);
    expect(whole.checkpoints.length).toBeGreaterThan(10);
    for (const checkpoint of whole.checkpoints)
      expect(differenceOf(await new TextTable(pipeline).write(input, checkpoint), whole)).toBe('');
  });

  it('wait for their grammar while other rows write', async () => {
    const table = new TextTable(pipeline);
    const slow = { ...ofSchema, isSlow: true };
    const input = textInput({ prompt, constraint: slow, maxTokens: 4 });
    await table.join('waits', input);
    await table.join('writes', textInput({ prompt, ignoreEos: true, maxTokens: 8 }));
    while (!table.results.has('writes')) await table.tick();
    expect(table.results.has('waits')).toBe(false);
    await table.run();
    const alone = await new TextTable(pipeline).write(input);
    expect(differenceOf(table.results.get('waits')!, alone)).toBe('');
  });

  it('continue in a new thread when the matcher thread fails', async () => {
    const input = textInput({ prompt, constraint: ofSchema, temperature: 1, seed: 5, maxTokens: 80 });
    const alone = await new TextTable(pipeline).write(input);
    const table = new TextTable(pipeline);
    await table.join('goes on', input);
    for (let tick = 0; tick < 12; tick++) await table.tick();
    await table.join('breaks', textInput({ prompt, constraint: ebnf('root ::= nothing') }));
    await table.run();
    expect(differenceOf(table.results.get('goes on')!, alone)).toBe('');
    expect(table.failures.get('breaks')).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(
        'the grammar of the text: EBNF: line 1, column 10: there is no rule "nothing"',
      ) as string,
    });
  });

  it('fail if the grammar allows no token', async () => {
    const table = new TextTable(pipeline);
    await table.join('a', textInput({ prompt, constraint: ebnf('root ::= "a" more\nmore ::= more "b"') }));
    await table.run();
    const message = 'the grammar of the text: the grammar allows no text: its root never ends';
    expect(table.failures.get('a')).toMatchObject({ code: 'invalid_request', message });
  });
});

describe('a request', () => {
  it('with a constraint and ignoreEos is rejected', async () => {
    const input = textInput({ prompt, constraint: ofSchema, ignoreEos: true });
    await expect(pipeline.createRows({ id: 'a', input })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'ignoreEos: cannot be combined with a constraint, which determines the end of the text',
    });
  });

  it('with a constraint for block diffusion is rejected', async () => {
    const blocks = await loadTextPipeline({ directory: resolve(root, 'models/emoji-writer-diffusion'), threads: 1 });
    const input = textInput({ prompt, constraint: ofSchema });
    await expect(blocks.createRows({ id: 'a', input })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('constraint: not supported by block diffusion models') as string,
    });
    await blocks.dispose();
  });
});

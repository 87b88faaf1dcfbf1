/**
 * JSONSchemaBench: the share of accepted schemas, their compile times, and the validity of random texts generated under
 * them. `JSON_SCHEMA_BENCH` is the benchmark's `data` folder (guidance-ai/jsonschemabench); default: bench/schemas.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { it } from 'vitest';
import { readTextModelDirectory } from '@darkroom/language';
import { constraintToLark } from '../libs/kinds/src/text/grammar/constraint/constraint-lark.ts';
import { GrammarProblem } from '../libs/kinds/src/text/grammar/schema/grammar-problem.ts';
import { engineModule, GrammarEngine } from '../libs/kinds/src/text/grammar/engine/grammar-engine.ts';
import { Matchers } from '../libs/kinds/src/text/grammar/engine/matchers.ts';
import { publishAtEnd } from './publish.ts';
import { quantile } from './report.ts';
import { type Cell, tableOf } from './table.ts';

const root = resolve(import.meta.dirname, '..');
const data = process.env['JSON_SCHEMA_BENCH'] ?? join(root, 'bench/schemas');
const sets = process.env['JSON_SCHEMA_BENCH']
  ? ['Github_easy', 'Github_medium', 'Github_hard', 'Glaiveai2K']
  : ['tricky'];
const maxSchemas = Number(process.env['BENCH_SCHEMAS'] ?? Infinity);
/** Maximum tokens of a text, and the tokens after which closing tokens are preferred. */
const [maxTokens, closingAfter] = [400, 60];

const { codec } = await readTextModelDirectory(join(root, 'models/emoji-writer'));
const [end = 2] = codec.endIds;
const ids = Array.from({ length: codec.vocabularySize }, (_, id) => id);
const tokens = ids.map((id) => (codec.isSpecial(id) ? new Uint8Array(0) : codec.bytesOf(id)));
const isClosing = ids.map((id) => id === end || /^["}\]]/u.test(codec.decode([id])));
const isComplete = ids.map((id) => !codec.decode([id]).includes('\uFFFD'));
const module = await engineModule();
const createMatchers = () => new Matchers(new GrammarEngine(module, { tokens, end }, 2 ** 28, true), [end]);

const found: Record<string, Record<string, Cell>> = {};
publishAtEnd(() => ({
  name: 'json-schema',
  title: 'JSON Schemas that texts keep to',
  notes: ['Tokens of the embedded writer; ajv validates random texts. Times are ms on one core.'],
  tables: [tableOf('JSONSchemaBench', found, undefined, false)],
}));

/** Returns the validator of a schema; undefined if ajv does not support it. */
function validatorOf({ $schema, ...schema }: Record<string, unknown>): ((value: unknown) => boolean) | undefined {
  const Validator = /draft-0[467]/u.test(String($schema)) ? Ajv : Ajv2020;
  try {
    return new Validator({ strict: false, logger: false, validateSchema: false, formats: {} }).compile(schema);
  } catch {
    return undefined;
  }
}

/** Generates a random text; returns undefined if it does not end within `maxTokens`. */
function write(matchers: Matchers, number: number): string | undefined {
  let state = number + 1;
  const draw = () => (state = (Math.imul(state, 48_271) >>> 0) % 2_147_483_647) / 2_147_483_647;
  const written: number[] = [];
  while (written.length < maxTokens) {
    const { words, isEnd } = matchers.allowed(number);
    const allowed = ids.filter((id) => (words[id >> 5]! >>> (id & 31)) & 1);
    const closers = allowed.filter((id) => isClosing[id]);
    const whole = allowed.filter((id) => isComplete[id]);
    const isEnding = closers.length > 0 && draw() < written.length / closingAfter;
    const among = isEnding ? closers : whole.length > 0 ? whole : allowed;
    const id = among[Math.floor(draw() * among.length)];
    if (isEnd || id === end) return codec.decode(written);
    if (id === undefined) throw new GrammarProblem('no token is allowed');
    written.push(id);
    matchers.accept(number, id);
  }
  return undefined;
}

it.each(sets)('%s', (set) => {
  let matchers = createMatchers();
  const times: number[] = [];
  let [accepted, ended, invalid] = [0, 0, 0];
  const files = readdirSync(join(data, set)).slice(0, maxSchemas);
  for (const [number, file] of files.entries()) {
    const schema = JSON.parse(readFileSync(join(data, set, file), 'utf8')) as Record<string, unknown>;
    const constraint = { type: 'json_schema', json_schema: schema } as const;
    const from = performance.now();
    try {
      matchers.open(number, file, () => constraintToLark(constraint).lark);
      matchers.allowed(number);
      accepted += 1;
      times.push(performance.now() - from);
      const isValid = validatorOf(schema);
      const text = isValid && write(matchers, number);
      if (text !== undefined) ended += 1;
      if (text !== undefined && !isValid!(JSON.parse(text))) {
        invalid += 1;
        console.info(`${set}/${file}: ${text.slice(0, 300)}`);
      }
    } catch (error) {
      if (!(error instanceof GrammarProblem)) matchers = createMatchers();
    }
    matchers.close(number);
  }
  found[set] = {
    schemas: files.length,
    'accepted, %': (100 * accepted) / files.length,
    'median, ms': quantile(times, 0.5),
    'p99, ms': quantile(times, 0.99),
    'texts that ended': ended,
    'of them invalid': invalid,
  };
});

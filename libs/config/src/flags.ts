/**
 * Settings on a command line: `--batch-max-size 4` is `BATCH_MAX_SIZE=4`, and wins over the environment. The flags are made from
 * the table of settings.
 */
import { parseArgs } from 'node:util';
import { editDistance } from '@darkroom/core';
import { trueOrFalse } from './setting-kinds.ts';
import type { ReaderName, Setting } from './setting.ts';
import { settings } from './settings.ts';

/** What a process is to say, in place of doing its work. */
const asks = ['help', 'version', 'print-config'] as const;

export interface Flags {
  /** Texts by the variables that they stand for. */
  readonly values: Readonly<Record<string, string>>;
  readonly asks?: (typeof asks)[number];
  /** One sentence for each word that cannot be used. */
  readonly problems: readonly string[];
}

export const noFlags: Flags = { values: {}, problems: [] };

/** How a setting is called on a command line. */
export function flagOf(variable: string): string {
  return `--${variable.toLowerCase().replaceAll('_', '-').replace(/-+$/, '')}`;
}

/** The settings that any of these read. */
export function settingsOf(readers: readonly ReaderName[]): Setting[] {
  return Object.values<Setting>(settings).filter(({ apps }) => apps.some((app) => readers.includes(app)));
}

/**
 * Reads the words after a program's name.
 *
 * @param readers whose settings they may be.
 */
export function readFlags(readers: readonly ReaderName[], words: readonly string[]): Flags {
  const known = new Map(settingsOf(readers).map((setting) => [flagOf(setting.variable), setting]));
  const options = Object.fromEntries([
    ...[...known.keys()].map((flag) => [flag.slice(2), { type: 'string' as const }]),
    ...asks.map((name) => [name, { type: 'boolean' as const, ...(name === 'help' && { short: 'h' }) }]),
  ]);
  const args = words.map((word, at) => withValue(word, words[at + 1], known));
  const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true });
  const values: Record<string, string> = {};
  const problems: string[] = [];
  let asked: Flags['asks'];
  // What follows a flag that is not known was its value.
  let isValueOfUnknown = false;
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      if (!isValueOfUnknown) problems.push(`${JSON.stringify(token.value)} is no flag; --help lists them`);
      isValueOfUnknown = false;
      continue;
    }
    const setting = known.get(`--${token.name}`);
    const asksHere = asks.find((name) => name === token.name);
    asked ??= asksHere;
    isValueOfUnknown = setting === undefined && asksHere === undefined;
    if (isValueOfUnknown) problems.push(unknownFlag(token.rawName, known));
    if (setting === undefined) continue;
    if (!token.value || (!token.inlineValue && token.value.startsWith('--')))
      problems.push(`${token.rawName} has no value, expected ${setting.kind.range}`);
    else values[setting.variable] = token.value;
  }
  return { values, problems, ...(asked !== undefined && { asks: asked }) };
}

/** `--open-access` alone is `--open-access=true`. */
function withValue(word: string, next: string | undefined, known: ReadonlyMap<string, Setting>): string {
  if (known.get(word)?.kind !== trueOrFalse || trueOrFalse.parse(next ?? '') !== undefined) return word;
  return `${word}=true`;
}

function unknownFlag(flag: string, known: ReadonlyMap<string, Setting>): string {
  const elsewhere = Object.values<Setting>(settings).find(({ variable }) => flagOf(variable) === flag);
  if (elsewhere !== undefined) return `${flag} is a flag of ${elsewhere.apps.join(', ')} only`;
  const [nearest] = [...known.keys(), ...asks.map((name) => `--${name}`)]
    .map((name) => ({ name, distance: editDistance(flag, name) }))
    .filter(({ name, distance }) => distance <= Math.max(2, Math.floor(name.length / 5)))
    .toSorted((left, right) => left.distance - right.distance);
  if (nearest !== undefined) return `${flag} is no flag; did you mean ${nearest.name}?`;
  return `${flag} is no flag; --help lists them`;
}

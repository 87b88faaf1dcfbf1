/**
 * Command-line flags, generated from the table of settings: `--batch-max-size 4` is `BATCH_MAX_SIZE=4` and overrides
 * the environment.
 */
import { parseArgs } from 'node:util';
import { editDistance } from '@darkroom/core';
import { trueOrFalse } from './setting-kinds.ts';
import type { ReaderName, Setting } from './setting.ts';
import { settings } from './settings.ts';

/** Flags that print something instead of starting the process. */
const infoFlags = ['help', 'version', 'print-config'] as const;

export interface Flags {
  /** Values by variable. */
  readonly values: Readonly<Record<string, string>>;
  readonly infoFlag?: (typeof infoFlags)[number];
  /** One sentence per invalid argument. */
  readonly problems: readonly string[];
}

export const noFlags: Flags = { values: {}, problems: [] };

/** Returns the flag of a variable. */
export function flagOf(variable: string): string {
  return `--${variable.toLowerCase().replaceAll('_', '-').replace(/-+$/, '')}`;
}

/** Returns the settings that any of these processes reads. */
export function settingsOf(readers: readonly ReaderName[]): Setting[] {
  return Object.values<Setting>(settings).filter(({ apps }) => apps.some((app) => readers.includes(app)));
}

/**
 * Parses command-line arguments.
 *
 * @param readers processes whose settings are valid flags.
 */
export function readFlags(readers: readonly ReaderName[], words: readonly string[]): Flags {
  const known = new Map(settingsOf(readers).map((setting) => [flagOf(setting.variable), setting]));
  const options = Object.fromEntries([
    ...[...known.keys()].map((flag) => [flag.slice(2), { type: 'string' as const }]),
    ...infoFlags.map((name) => [name, { type: 'boolean' as const, ...(name === 'help' && { short: 'h' }) }]),
  ]);
  const args = words.map((word, at) => withValue(word, words[at + 1], known));
  const { tokens } = parseArgs({ args, options, strict: false, allowPositionals: true, tokens: true });
  const values: Record<string, string> = {};
  const problems: string[] = [];
  let requested: Flags['infoFlag'];
  // An argument after an unknown flag is that flag's value.
  let isValueOfUnknown = false;
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      if (!isValueOfUnknown) problems.push(`${JSON.stringify(token.value)} is not a flag; --help lists them`);
      isValueOfUnknown = false;
      continue;
    }
    const setting = known.get(`--${token.name}`);
    const infoFlag = infoFlags.find((name) => name === token.name);
    requested ??= infoFlag;
    isValueOfUnknown = setting === undefined && infoFlag === undefined;
    if (isValueOfUnknown) problems.push(unknownFlag(token.rawName, known));
    if (setting === undefined) continue;
    if (!token.value || (!token.inlineValue && token.value.startsWith('--')))
      problems.push(`${token.rawName} has no value, expected ${setting.kind.range}`);
    else values[setting.variable] = token.value;
  }
  return { values, problems, ...(requested !== undefined && { infoFlag: requested }) };
}

/** Turns a bare boolean flag such as `--open-access` into `--open-access=true`. */
function withValue(word: string, next: string | undefined, known: ReadonlyMap<string, Setting>): string {
  if (known.get(word)?.kind !== trueOrFalse || trueOrFalse.parse(next ?? '') !== undefined) return word;
  return `${word}=true`;
}

/** Our flags by the corresponding flags of other servers (vLLM, SGLang, llama.cpp, Triton). */
export const compatFlags: Readonly<Record<string, string>> = {
  '-m': '--model-dir',
  '--model': '--model-dir',
  '--model-path': '--model-dir',
  '--model-repository': '--model-dirs',
  '--models': '--model-dirs',
  '--models-dir': '--model-dirs',
  '--checkpoint': '--model-dir',
  '--ckpt': '--model-dir',
  '--served-model-name': '--model-id',
  '--alias': '--model-id',
  '--dtype': '--model-dtype',
  '--api-key': '--api-keys',
  '--api-key-file': '--api-keys-file',
  '--allowed-origins': '--cors-origins',
  '--enable-prompt-batching': '--batch-max-size',
  '--max-num-seqs': '--batch-max-size',
  '--max-batch-size': '--batch-max-size',
  '--redis': '--redis-url',
};

function unknownFlag(flag: string, known: ReadonlyMap<string, Setting>): string {
  const elsewhere = Object.values<Setting>(settings).find(({ variable }) => flagOf(variable) === flag);
  if (elsewhere !== undefined) return `${flag} is a flag of ${elsewhere.apps.join(', ')} only`;
  const foreign = compatFlags[flag.toLowerCase()];
  if (foreign !== undefined && known.has(foreign)) return `${flag} is not a flag; did you mean ${foreign}?`;
  const [nearest] = [...known.keys(), ...infoFlags.map((name) => `--${name}`)]
    .map((name) => ({ name, distance: editDistance(flag, name) }))
    .filter(({ name, distance }) => distance <= Math.max(2, Math.floor(name.length / 5)))
    .toSorted((left, right) => left.distance - right.distance);
  if (nearest !== undefined) return `${flag} is not a flag; did you mean ${nearest.name}?`;
  return `${flag} is not a flag; --help lists them`;
}

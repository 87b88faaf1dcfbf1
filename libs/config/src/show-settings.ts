/** What a process says of its settings, in place of doing its work. */
import { readFileSync } from 'node:fs';
import { flagOf, type Flags, settingsOf } from './flags.ts';
import { type Environment, type SettingInForce, settingsInForce } from './load-config.ts';
import type { ReaderName, Setting } from './setting.ts';

/** The version of the system: its packages have one. */
export function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * What flags ask to be said; undefined if they ask for nothing.
 *
 * @param usage what the command line begins with.
 * @throws {ConfigError} if there are mistakes in what is to be shown.
 */
export function answerFlags(
  readers: readonly ReaderName[],
  usage: string,
  flags: Flags,
  environment: Environment = process.env,
): string | undefined {
  const { asks, problems } = flags;
  if (asks === undefined || problems.length > 0) return undefined;
  if (asks === 'help') return helpText(readers, usage);
  if (asks === 'version') return `${readVersion()}\n`;
  return configText(readers.flatMap((reader) => settingsInForce(reader, environment, flags)));
}

/** All settings, as flags. */
function helpText(readers: readonly ReaderName[], usage: string): string {
  const all = settingsOf(readers).map(helpOf);
  return `${usage} [flags]

Each flag stands for the variable beside it, and wins over it.

${all.join('\n')}
  --print-config
      Says what is in force, and where each value came from.
  --help, --version
`;
}

function helpOf({ variable, kind, doc, ...setting }: Setting): string {
  const standard = setting.default ?? setting.computed ?? setting.absent ?? 'none';
  const unit = kind.unit === undefined ? '' : ` (${kind.unit})`;
  // Links are for those who read it as a page.
  const text = doc.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, 'docs/$1').replaceAll('`', '');
  return `  ${flagOf(variable)}, ${variable}\n      ${text}\n      ${kind.range}${unit}. Default: ${standard}.`;
}

/** One line for each setting: its variable, its value and where that came from. Secrets are hidden. */
function configText(all: readonly SettingInForce[]): string {
  const once = [...new Map(all.map((one) => [one.variable, one])).values()];
  const wide = Math.max(...once.map(({ variable }) => variable.length));
  return once
    .map(({ variable, shown, source }) => `${variable.padEnd(wide)}  ${shown.padEnd(30)}  ${source}\n`)
    .join('');
}

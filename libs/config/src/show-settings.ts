/** Output of --help, --version and --print-config, and the text of docs/configuration.md. */
import { readFileSync } from 'node:fs';
import { flagOf, type Flags, settingsOf } from './flags.ts';
import { type Environment, type SettingInForce, settingsInForce } from './load-config.ts';
import { appNames, type ReaderName, type Setting } from './setting.ts';
import { settings } from './settings.ts';

/** Returns the version of the system, which all packages share. */
export function readVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * Returns the output that flags such as --help request; undefined if there is none.
 *
 * @param usage start of the command line.
 * @throws {ConfigError} if the settings to print are invalid.
 */
export function answerFlags(
  readers: readonly ReaderName[],
  usage: string,
  flags: Flags,
  environment: Environment = process.env,
): string | undefined {
  const { infoFlag, problems } = flags;
  if (infoFlag === undefined || problems.length > 0) return undefined;
  if (infoFlag === 'help') return helpText(readers, usage);
  if (infoFlag === 'version') return `${readVersion()}\n`;
  return configText(readers.flatMap((reader) => settingsInForce(reader, environment, flags)));
}

/** Lists all settings as flags. */
function helpText(readers: readonly ReaderName[], usage: string): string {
  const all = settingsOf(readers).map(helpOf);
  return `${usage} [flags]

Each flag sets the variable next to it and overrides the environment.

${all.join('\n')}
  --print-config
      Prints the effective settings and the source of each value.
  --help, --version
`;
}

function helpOf(setting: Setting): string {
  const { variable, kind, doc } = setting;
  const unit = kind.unit === undefined ? '' : ` (${kind.unit})`;
  // Links make sense only on the documentation page.
  const text = doc.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, 'docs/$1').replaceAll('`', '');
  return `  ${flagOf(variable)}, ${variable}\n      ${text}\n      ${kind.range}${unit}. Default: ${defaultOf(setting)}.`;
}

/** Prints one line per setting: variable, value, source. Secrets are masked. */
function configText(all: readonly SettingInForce[]): string {
  const once = [...new Map(all.map((one) => [one.variable, one])).values()];
  const wide = Math.max(...once.map(({ variable }) => variable.length));
  return once
    .map(({ variable, shown, source }) => `${variable.padEnd(wide)}  ${shown.padEnd(30)}  ${source}\n`)
    .join('');
}

/** Returns the text of docs/configuration.md, generated from the table of settings; a test compares the two. */
export function configurationDocument(): string {
  return `# Configuration

<!-- Made from libs/config/src/settings.ts by \`npm run build && node tools/write-configuration-doc.mjs\`: edit there. -->

All settings are optional environment variables or flags. The flag of \`BATCH_MAX_SIZE\` is \`--batch-max-size\`; it overrides the
variable: \`npm start -- --batch-max-size 4\`. An empty value counts as not set. A process with an invalid value or a misspelled
name (\`BATCH_MAXSIZE\`) reports all problems at once and exits with status 78. \`npm start\` passes its environment and its flags on
to every process. Settings read by \`model\` are for \`npm run model\`, which reads them from the environment only.

\`--help\` lists the settings of a process, \`--print-config\` prints the effective values and their sources, with secrets hidden, and
\`--version\` prints the version. Other users of the machine can see a process's flags, so put secrets in the environment.

| variable | default | unit | values | read by | what it does |
| --- | --- | --- | --- | --- | --- |
${Object.values(settings).map(documentRow).join('\n')}
`;
}

function documentRow(setting: Setting): string {
  const { variable, kind, apps, doc } = setting;
  const readers = apps.length === appNames.length ? 'all' : apps.join(', ');
  const shown = setting.default === undefined ? defaultOf(setting) : `\`${setting.default}\``;
  return `| \`${variable}\` | ${shown} | ${kind.unit ?? ''} | ${kind.range} | ${readers} | ${doc} |`;
}

/** Returns the default as text: its value, or a description. */
function defaultOf(setting: Setting): string {
  return setting.default ?? setting.computed ?? setting.absent ?? 'none';
}

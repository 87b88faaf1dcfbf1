import { appNames, type Setting } from './setting.ts';
import { settings } from './settings.ts';

/** The text of docs/configuration.md, made from the table of settings. A test compares the two. */
export function configurationDocument(): string {
  return `# Configuration

<!-- Made from libs/config/src/settings.ts by \`npm run build && node tools/write-configuration-doc.mjs\`: edit there. -->

Everything is set by environment variables or flags; nothing has to be. The flag of \`BATCH_MAX_SIZE\` is \`--batch-max-size\`, and wins over
it: \`npm start -- --batch-max-size 4\`. An empty value counts as not set. A process that finds a
wrong value, or a name that is nearly one of these (\`BATCH_MAXSIZE\`), says all that is wrong at once and exits with
status 78. \`npm start\` passes its environment and its flags on to every process. What \`model\` reads is for \`npm run model\`, and only in the
environment.

\`--help\` lists the settings of a process, \`--print-config\` shows what is in force and where each value came from, with secrets hidden, and
\`--version\` says the version. Others on the machine can see the flags of a process, so a secret is better in the environment.

| variable | default | unit | values | read by | what it does |
| --- | --- | --- | --- | --- | --- |
${Object.values(settings).map(documentRow).join('\n')}
`;
}

function documentRow({ variable, kind, apps, doc, ...setting }: Setting): string {
  const readers = apps.length === appNames.length ? 'all' : apps.join(', ');
  const standard =
    setting.default === undefined ? (setting.computed ?? setting.absent ?? 'none') : `\`${setting.default}\``;
  return `| \`${variable}\` | ${standard} | ${kind.unit ?? ''} | ${kind.range} | ${readers} | ${doc} |`;
}

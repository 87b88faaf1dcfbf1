import { appNames, type ReaderName, type Setting, type SettingDefault } from './setting.ts';
import { settings } from './settings.ts';

/** The text of docs/configuration.md, made from the table of settings. A test compares the two. */
export function configurationDocument(): string {
  return `# Configuration

<!-- Made from libs/config/src/settings.ts by \`npm run build && node tools/write-configuration-doc.mjs\`: edit there. -->

Everything is set by environment variables; nothing has to be. An empty value counts as not set. A process that finds a
wrong value, or a name that is nearly one of these (\`BATCH_MAXSIZE\`), says all that is wrong at once and exits with
status 78. \`npm start\` passes its environment on to every process. What \`model\` reads is for \`npm run model\`.

| variable | default | unit | values | read by | what it does |
| --- | --- | --- | --- | --- | --- |
${Object.values(settings).map(documentRow).join('\n')}
`;
}

function documentRow(setting: Setting<unknown, ReaderName, SettingDefault>): string {
  const readers = setting.apps.length === appNames.length ? 'all' : setting.apps.join(', ');
  const standard = typeof setting.default !== 'string' ? (setting.defaultDoc ?? 'none') : `\`${setting.default}\``;
  return `| \`${setting.variable}\` | ${standard} | ${setting.unit ?? ''} | ${setting.kind.range} | ${readers} | ${setting.doc} |`;
}

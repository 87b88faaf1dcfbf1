import { appNames, type Setting } from './setting.ts';
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

function documentRow({ variable, kind, apps, doc, ...setting }: Setting): string {
  const readers = apps.length === appNames.length ? 'all' : apps.join(', ');
  const standard =
    setting.default === undefined ? (setting.computed ?? setting.absent ?? 'none') : `\`${setting.default}\``;
  return `| \`${variable}\` | ${standard} | ${kind.unit ?? ''} | ${kind.range} | ${readers} | ${doc} |`;
}

/** `npm start` and every process that is asked something, or told something that it does not know: it says so, and starts nothing. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { settings } from '../../libs/config/src/settings.ts';
import { flagOf } from '../../libs/config/src/flags.ts';
import { readVersion } from '@darkroom/config';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url).pathname;
const processes = ['api', 'batch-former', 'worker', 'webhook-sender', 'janitor'] as const;
const secret = 'redis://me:hunter2@127.0.0.1:1';

/** To its end, with one setting in the environment that has a secret in it. */
async function run(script: string, ...words: string[]): Promise<{ code: number; said: string; complained: string }> {
  const env = { PATH: process.env['PATH'] ?? '', REDIS_URL: secret };
  const child = spawn(process.execPath, [script, ...words], { cwd: root, env });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await once(child, 'exit')) as [number];
  const [said, complained] = await output;
  return { code, said, complained };
}

/** Its settings, as the table has them; those of all processes where none is named. */
function settingsOf(process?: string) {
  const readers: readonly string[] = process === undefined ? processes : [process];
  return Object.values(settings).filter(({ apps }) => apps.some((app) => readers.includes(app)));
}

/** How it is started, what the flags are of, and where it says its mistakes. */
const all = [
  ['npm start', 'tools/start.mjs', undefined, 1],
  ...processes.map((name) => [name, `apps/${name}/dist/main.js`, name, 78] as const),
] as const;

it.each(all)('%s lists its settings with range, unit and default', async (_name, script, app) => {
  const { code, said } = await run(script, '--help');
  expect(code).toBe(0);
  const listed = said.match(/^ {2}--\S+, [A-Z_0-9]+$/gm);
  const expected = settingsOf(app).map(({ variable }) => `  ${flagOf(variable)}, ${variable}`);
  expect(new Set(listed)).toEqual(new Set(expected));
  expect(said.match(/\. Default: [^\n]+\.$/gm)).toHaveLength(expected.length);
  for (const { variable, kind } of settingsOf(app)) {
    const shown = said
      .slice(said.indexOf(`, ${variable}\n`))
      .split('\n')
      .slice(0, 3)
      .join('\n');
    expect(shown).toContain(`${kind.range}${kind.unit === undefined ? '' : ` (${kind.unit})`}. Default: `);
  }
});

it.each(all)('%s says its version', async (_name, script) => {
  const { code, said } = await run(script, '--version');
  expect([code, said.trim()]).toEqual([0, readVersion()]);
});

it.each(all)('%s shows what is in force, and where it came from, without secrets', async (_name, script, app) => {
  const { code, said } = await run(script, '--print-config', '--log-level=warn');
  expect(code).toBe(0);
  expect(said).toMatch(/^LOG_LEVEL +warn +flag$/m);
  expect(said).toMatch(/^REDIS_URL +redis:\/\/me:\*\*\*@127\.0\.0\.1:1 +environment$/m);
  expect(said).toMatch(/^REDIS_PREFIX +\S+ +default$/m);
  expect(said).not.toContain('hunter2');
  const shown = [...said.matchAll(/^([A-Z_0-9]+) .* (?:flag|environment|default|computed|not set)$/gm)];
  const variables = settingsOf(app).map(({ variable }) => variable);
  expect(new Set(shown.map(([, variable]) => variable))).toEqual(new Set(variables));
});

it.each(all)(
  '%s refuses a flag that it does not know, and names the nearest',
  async (_name, script, _app, mistaken) => {
    const { code, complained } = await run(script, '--help', '--log-levle', 'warn', '--colour=red');
    expect(code).toBe(mistaken);
    expect(complained).toContain('--log-levle is no flag; did you mean --log-level?');
    expect(complained).toContain('--colour is no flag; --help lists them');
  },
);

/** The flags --help, --version and --print-config, and unknown flags, of `npm start` and every process. */
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

/** Runs a script to its end, with a secret in REDIS_URL. */
async function run(script: string, ...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env['PATH'] ?? '', REDIS_URL: secret };
  const child = spawn(process.execPath, [script, ...words], { cwd: root, env });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = (await once(child, 'exit')) as [number];
  const [stdout, stderr] = await output;
  return { code, stdout, stderr };
}

/** Returns the settings of a process, or of all processes without a name. */
function settingsOf(process?: string) {
  const readers: readonly string[] = process === undefined ? processes : [process];
  return Object.values(settings).filter(({ apps }) => apps.some((app) => readers.includes(app)));
}

/** Name, script, process whose settings it takes (undefined: all), and exit status for wrong flags. */
const all = [
  ['npm start', 'tools/start.mjs', undefined, 1],
  ...processes.map((name) => [name, `apps/${name}/dist/main.js`, name, 78] as const),
] as const;

it.each(all)('%s --help lists its settings with range, unit and default', async (_name, script, app) => {
  const { code, stdout } = await run(script, '--help');
  expect(code).toBe(0);
  const listed = stdout.match(/^ {2}--\S+, [A-Z_0-9]+$/gm);
  const expected = settingsOf(app).map(({ variable }) => `  ${flagOf(variable)}, ${variable}`);
  expect(new Set(listed)).toEqual(new Set(expected));
  expect(stdout.match(/\. Default: [^\n]+\.$/gm)).toHaveLength(expected.length);
  for (const { variable, kind } of settingsOf(app)) {
    const shown = stdout
      .slice(stdout.indexOf(`, ${variable}\n`))
      .split('\n')
      .slice(0, 3)
      .join('\n');
    expect(shown).toContain(`${kind.range}${kind.unit === undefined ? '' : ` (${kind.unit})`}. Default: `);
  }
});

it.each(all)('%s --version prints its version', async (_name, script) => {
  const { code, stdout } = await run(script, '--version');
  expect([code, stdout.trim()]).toEqual([0, readVersion()]);
});

it.each(all)('%s --print-config prints each value with its source, without secrets', async (_name, script, app) => {
  const { code, stdout } = await run(script, '--print-config', '--log-level=warn');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^LOG_LEVEL +warn +flag$/m);
  expect(stdout).toMatch(/^REDIS_URL +redis:\/\/me:\*\*\*@127\.0\.0\.1:1 +environment$/m);
  expect(stdout).toMatch(/^REDIS_PREFIX +\S+ +default$/m);
  expect(stdout).not.toContain('hunter2');
  const shown = [...stdout.matchAll(/^([A-Z_0-9]+) .* (?:flag|environment|default|computed|not set)$/gm)];
  const variables = settingsOf(app).map(({ variable }) => variable);
  expect(new Set(shown.map(([, variable]) => variable))).toEqual(new Set(variables));
});

it.each(all)('%s rejects an unknown flag and suggests the nearest', async (_name, script, _app, errorStatus) => {
  const { code, stderr } = await run(script, '--help', '--log-levle', 'warn', '--colour=red');
  expect(code).toBe(errorStatus);
  expect(stderr).toContain('--log-levle is not a flag; did you mean --log-level?');
  expect(stderr).toContain('--colour is not a flag; --help lists them');
});

import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { childEnvironment, exportFlagsToEnvironment } from './child-environment.ts';
import { flagOf, compatFlags, readFlags } from './flags.ts';
import { loadConfig } from './load-config.ts';
import { appNames } from './setting.ts';
import { settings } from './settings.ts';
import { answerFlags } from './show-settings.ts';

function say(words: string[], environment: Record<string, string> = {}): string | undefined {
  return answerFlags(['api'], 'npm start --', readFlags(['api'], words), environment);
}

describe('flags', () => {
  it('exist for each setting under a unique name', () => {
    const flags = Object.values(settings).map(({ variable }) => flagOf(variable));
    expect(new Set(flags).size).toBe(flags.length);
    expect(flags).toContain('--batch-max-size');
  });

  it.each<[string[], Record<string, string>]>([
    [['--batch-max-size', '4', '--device=cpu'], { BATCH_MAX_SIZE: '4', DEVICE: 'cpu' }],
    [['--low-memory', '--batch-max-size', '4'], { LOW_MEMORY: 'true', BATCH_MAX_SIZE: '4' }],
    [['--low-memory', 'false'], { LOW_MEMORY: 'false' }],
    [['--low-memory=0'], { LOW_MEMORY: '0' }],
    [['--low-memory'], { LOW_MEMORY: 'true' }],
  ])('%j', (words, values) => {
    expect(readFlags(['worker'], words)).toEqual({ values, problems: [] });
  });

  it.each([
    [['--batch-maxsize', '4'], '--batch-maxsize is not a flag; did you mean --batch-max-size?'],
    [['--port', '80'], '--port is a flag of api only'],
    [['--prot', '1'], '--prot is not a flag; --help lists them'],
    [['--metrics-prot', '1'], '--metrics-prot is not a flag; did you mean --metrics-port?'],
    [['--colour', 'red'], '--colour is not a flag; --help lists them'],
    [['--kv-tokens'], '--kv-tokens has no value, expected a whole number from 1 to 100000000'],
    [['--kv-tokens', '--low-memory=1'], '--kv-tokens has no value, expected a whole number from 1 to 100000000'],
    [['--model', 'models/mine'], '--model is not a flag; did you mean --model-dir?'],
    [['--model-path=models/mine'], '--model-path is not a flag; did you mean --model-dir?'],
    [['-m', 'models/mine'], '-m is not a flag; did you mean --model-dir?'],
    [['--served-model-name', 'mine'], '--served-model-name is not a flag; did you mean --model-id?'],
    [['--verison'], '--verison is not a flag; did you mean --version?'],
    [['models/mine'], '"models/mine" is not a flag; --help lists them'],
  ])('%j: %s', (words, problem) => {
    const flags = readFlags(['worker'], words);
    expect(flags.problems).toEqual([problem]);
    expect(() => loadConfig('worker', {}, flags)).toThrow(problem);
  });

  it('suggests no flag that the process does not have', () => {
    expect(readFlags(['janitor'], ['--model', 'x']).problems).toEqual(['--model is not a flag; --help lists them']);
  });

  it('maps flags of other servers to existing flags only', () => {
    const all = Object.values(settings).map(({ variable }) => flagOf(variable));
    expect(Object.values(compatFlags).filter((flag) => !all.includes(flag))).toEqual([]);
  });

  it('override the environment, and are named in error messages', () => {
    const environment = { BATCH_MAX_SIZE: '2', ENGINE_TIMEOUT_S: 'x' };
    expect(loadConfig('worker', { BATCH_MAX_SIZE: '2' }, readFlags(['worker'], ['--batch-max-size=4']))).toMatchObject({
      batchMaxSize: 4,
    });
    expect(() => loadConfig('worker', environment, readFlags(['worker'], ['--batch-max-size=0']))).toThrow(
      /--batch-max-size is "0", expected a whole number from 1 to 256\n.*ENGINE_TIMEOUT_S is "x", expected/,
    );
  });
});

it('are passed to child processes in the environment', () => {
  vi.stubEnv('BATCH_MAX_SIZE', '2');
  onTestFinished(() => void vi.unstubAllEnvs());
  exportFlagsToEnvironment(readFlags(['worker'], ['--batch-max-size=4']));
  expect(childEnvironment({ WORKER_ID: 'w-0' })).toMatchObject({ BATCH_MAX_SIZE: '4', WORKER_ID: 'w-0' });
});

describe('--help, --version and --print-config', () => {
  it('lists every setting with its unit, range and default', () => {
    const help = say(['-h'])!;
    expect(help).toMatch(/^npm start -- \[flags\]\n/);
    for (const setting of Object.values(settings).filter(({ apps }) => (apps as readonly string[]).includes('api')))
      expect(help).toContain(`  ${flagOf(setting.variable)}, ${setting.variable}\n`);
    expect(help).toContain('a whole number from 1 to 2592000 (s). Default: 3600.');
    expect(help).not.toContain('](');
  });

  it('prints the effective settings with their sources, without secrets', () => {
    const environment = { PORT: '81', REDIS_URL: 'redis://me:secret@redis:1', API_KEYS: 'alice:secret-of-alice-1' };
    const shown = say(['--print-config', '--host', '127.0.0.2'], environment)!;
    expect(shown).toMatch(/^PORT +81 +environment$/m);
    expect(shown).toMatch(/^HOST +127\.0\.0\.2 +flag$/m);
    expect(shown).toMatch(/^RESULT_TTL_S +3600 +default$/m);
    expect(shown).toMatch(/^DEFAULT_MODEL +not set$/m);
    expect(shown).toMatch(/^REDIS_URL +redis:\/\/me:\*\*\*@redis:1 +environment$/m);
    expect(shown).toMatch(/^API_KEYS +\*\*\* +environment$/m);
    expect(shown).not.toContain('secret');
  });

  it('prints a setting shared by several processes once, and computed values', () => {
    const shown = answerFlags(appNames, 'npm start --', readFlags(appNames, ['--print-config']), {})!;
    expect(shown.match(/^REDIS_URL /gm)).toHaveLength(1);
    expect(shown).toMatch(/^MODEL_ID +emoji-sd +computed$/m);
  });

  it('reports mistakes instead of an answer', () => {
    expect(say(['--help', '--prot', '1'])).toBeUndefined();
    expect(() => say(['--print-config', '--port', 'x'])).toThrow('--port is "x"');
  });
});

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface PartOptions {
  name: string;
  script: string;
  env: Record<string, string>;
}
type PartsOf = (options: {
  root: string;
  environment: Record<string, string>;
  metricsPort: number | undefined;
}) => PartOptions[];
// Plain JavaScript: it runs before anything is built.
const path = '../../../tools/start/parts.mjs';
const { partsOf } = (await import(path)) as { partsOf: PartsOf };

/** The directory in which the system starts contains the models, as in a checkout. */
function parts(environment: Record<string, string> = {}, metricsPort?: number, root = process.cwd()): PartOptions[] {
  return partsOf({ root, environment, metricsPort });
}

const inTheBox = 'models/emoji-sd,models/emoji-writer,models/emoji-writer-diffusion,models/emoji-reader';

it('starts one worker for the bundled models and passes the environment on', () => {
  const set = {
    REDIS_URL: 'redis://r',
    WORKER_ID: 'w',
    NUM_THREADS: '3',
    MODEL_DIRS: ' ',
    NODE_OPTIONS: '--stack-size=2000',
  };
  const [light, worker, ...rest] = parts(set);
  expect([light?.name, rest]).toEqual(['api, batch-former, webhook-sender, janitor', []]);
  expect(worker?.env).toMatchObject({
    ...set,
    MODEL_DIRS: inTheBox,
    NODE_OPTIONS: expect.stringContaining('2000') as string,
  });
});

it('names the bundled models by paths relative to the current directory where the package is installed', () => {
  const { MODEL_DIRS } = parts({}, undefined, `${process.cwd()}/node_modules/@darkroom/server`).at(-1)!.env;
  expect(MODEL_DIRS?.split(',')[0]).toBe('node_modules/@darkroom/server/models/emoji-sd');
});

it.each<Record<string, string>>([
  { MODEL_DIR: 'models/mine' },
  { MODEL_DIRS: 'models/*' },
  { MODEL_ID: 'mine' },
  { EXECUTOR: 'http', MODEL_ID: 'mine' },
])('serves only the models that the environment names: %o', (named) => {
  const { MODEL_DIRS } = parts(named).at(-1)!.env;
  expect(MODEL_DIRS).toBe(named['MODEL_DIRS']);
});

it('passes each V8 flag once', () => {
  for (const { env } of parts()) {
    const flags = env['NODE_OPTIONS']!.trim().split(/\s+/);
    expect(flags).toEqual([...new Set(flags)]);
  }
  const { start } = (JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }).scripts;
  expect(start).toBe('node tools/start.mjs');
});

it('assigns a metrics port to each process, the last to the worker, which may have replicas', () => {
  const ports = parts({}, 9000).map(({ name, env }) => [name, env['METRICS_PORT']]);
  expect(Object.fromEntries(ports)).toEqual({
    'api, batch-former, webhook-sender, janitor': '9000',
    worker: '9004',
  });
  const traced = parts({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, 9000);
  expect(traced.slice(0, 4).map(({ name, env }) => [name, env['METRICS_PORT']])).toEqual([
    ['api', '9000'],
    ['batch-former', '9001'],
    ['webhook-sender', '9002'],
    ['janitor', '9003'],
  ]);
  expect(parts({}).some(({ env }) => 'METRICS_PORT' in env)).toBe(false);
});

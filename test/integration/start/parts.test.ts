import { expect, it } from 'vitest';

interface PartOptions {
  name: string;
  isWorker: boolean;
  script: string;
  env: Record<string, string>;
}
type PartsOf = (options: {
  root: string;
  environment: Record<string, string>;
  metricsPort: number | undefined;
}) => PartOptions[];
// Plain JavaScript, because it runs before anything is built.
const path = '../../../tools/start/parts.mjs';
const { partsOf } = (await import(path)) as { partsOf: PartsOf };

function parts(environment: Record<string, string> = {}, metricsPort?: number): PartOptions[] {
  return partsOf({ root: '/r', environment, metricsPort });
}

it('starts a worker for each model that is in the box', () => {
  const workers = parts({ REDIS_URL: 'redis://r' }).filter(({ isWorker }) => isWorker);
  expect(workers.map(({ name, env }) => [name, env['MODEL_DIR'], env['NUM_THREADS'], env['REDIS_URL']])).toEqual([
    ['worker', undefined, undefined, 'redis://r'],
    ['worker of emoji-writer', 'models/emoji-writer', '1', 'redis://r'],
    ['worker of emoji-writer-diffusion', 'models/emoji-writer-diffusion', '1', 'redis://r'],
  ]);
});

it('starts one for the model that is named, and no other', () => {
  for (const named of [
    { MODEL_DIR: 'models/mine' },
    { MODEL_DIRS: 'models/*' },
    { EXECUTOR: 'http', MODEL_ID: 'mine' },
  ]) {
    const names = parts(named).map(({ name }) => name);
    expect(names).toEqual(['api, batch-former, webhook-sender, janitor', 'worker']);
  }
  expect(parts({ EXECUTOR: 'process' })).toHaveLength(4);
});

it('keeps settings of the worker of pictures from the others', () => {
  const set = { MODEL_ID: 'sd', MODEL_DTYPE: 'fp16', DEVICE: 'cuda', NUM_WORKER_PROCESSES: '2', NUM_THREADS: '3' };
  const [pictures, writer] = parts({ ...set, WORKER_ID: 'w' }).filter(({ isWorker }) => isWorker);
  expect(pictures?.env).toMatchObject({ ...set, WORKER_ID: 'w' });
  expect(writer?.env).toMatchObject({
    MODEL_ID: '',
    MODEL_DTYPE: '',
    DEVICE: '',
    NUM_WORKER_PROCESSES: '',
    NUM_THREADS: '3',
    WORKER_ID: 'w-emoji-writer',
  });
});

it('gives each a port for its metrics, the last to the worker that may be several', () => {
  const ports = parts({}, 9000).map(({ name, env }) => [name, env['METRICS_PORT']]);
  expect(Object.fromEntries(ports)).toEqual({
    'api, batch-former, webhook-sender, janitor': '9000',
    'worker of emoji-writer': '9004',
    'worker of emoji-writer-diffusion': '9005',
    worker: '9006',
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

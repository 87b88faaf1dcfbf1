/** Settings that docker-compose.yml passes to each service, read with `docker compose config`; no container starts. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@darkroom/config';
import { expect, it, onTestFinished } from 'vitest';

const root = new URL('../../', import.meta.url).pathname;

interface Given {
  /** Content of docker-compose.override.yml; undefined for no such file. */
  override?: string;
  /** Content of darkroom.env; undefined for no such file. */
  file?: string;
  /** Environment variables of the `docker compose` call. */
  shell?: Record<string, string>;
}

interface Service {
  environment: Record<string, string>;
  volumes?: { target: string }[];
}

function environmentOf(service: string, given: Given): Record<string, string> {
  return serviceOf(service, given).environment;
}

function serviceOf(service: string, { file, override, shell = {} }: Given): Service {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-compose-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  cpSync(join(root, 'docker-compose.yml'), join(directory, 'docker-compose.yml'));
  mkdirSync(join(directory, 'deploy'));
  cpSync(join(root, 'deploy/docker'), join(directory, 'deploy/docker'), { recursive: true });
  if (file !== undefined) writeFileSync(join(directory, 'darkroom.env'), file);
  if (override !== undefined) writeFileSync(join(directory, 'docker-compose.override.yml'), override);
  const { PATH, HOME } = process.env;
  const command = ['compose', 'config', '--format', 'json', service];
  const config = execFileSync('docker', command, { cwd: directory, env: { PATH, HOME, ...shell }, encoding: 'utf8' });
  const { services } = JSON.parse(config) as { services: Record<string, Service> };
  return services[service]!;
}

const ownerLimit = { OWNER_MAX_BYTES: '268435456' };

it.each<[string, Given, Record<string, string>]>([
  ['defaults', {}, { ...ownerLimit, REDIS_URL: 'redis://redis:6379', OPEN_ACCESS: 'true' }],
  [
    'values from darkroom.env',
    { file: 'OPEN_ACCESS=false\nAPI_KEYS=alice:a-key-of-16-chars\nREDIS_URL=rediss://elsewhere:6380\n' },
    { ...ownerLimit, REDIS_URL: 'rediss://elsewhere:6380', OPEN_ACCESS: 'false', API_KEYS: 'alice:a-key-of-16-chars' },
  ],
  [
    'values from the shell',
    { shell: { REDIS_URL: 'rediss://elsewhere:6380', OPEN_ACCESS: 'false' } },
    { ...ownerLimit, REDIS_URL: 'rediss://elsewhere:6380', OPEN_ACCESS: 'false' },
  ],
])('passes %s to the API', (_what, given, expected) => {
  expect(environmentOf('api', given)).toEqual(expected);
});

it('passes model settings of darkroom.env only to the image worker, and all others to the text workers too', () => {
  const file =
    'MODEL_DIR=models/mine\nMODEL_ID=mine\nMODEL_DTYPE=fp16\nDEVICE=webgpu\nNUM_THREADS=4\nBATCH_MAX_SIZE=4\n';
  const names = ['worker', 'worker-emoji-writer', 'worker-emoji-writer-diffusion'];
  const read = names.map((name) => {
    const { modelId, modelDir, modelDtype, devices, numThreads, batchMaxSize } = loadConfig(
      'worker',
      environmentOf(name, { file }),
    );
    return { modelId, modelDir, dtype: modelDtype.all, devices, numThreads, batchMaxSize };
  });
  const writer = { dtype: 'auto', devices: ['cpu'], numThreads: 1, batchMaxSize: 4 };
  expect(read).toEqual([
    {
      modelId: 'mine',
      modelDir: join(root, 'models/mine'),
      dtype: 'fp16',
      devices: ['webgpu'],
      numThreads: 4,
      batchMaxSize: 4,
    },
    { modelId: 'emoji-writer', modelDir: join(root, 'models/emoji-writer'), ...writer },
    { modelId: 'emoji-writer-diffusion', modelDir: join(root, 'models/emoji-writer-diffusion'), ...writer },
  ]);
});

/** Returns the mmproj file of llama.cpp's server in compose, as configured by an environment. */
function mmprojFileOf(given: Record<string, string>): string | undefined {
  const { PATH, HOME } = process.env;
  const command = ['compose', '--profile', 'llama', 'config', '--format', 'json', 'llama'];
  const config = execFileSync('docker', command, { cwd: root, env: { PATH, HOME, ...given }, encoding: 'utf8' });
  const { services } = JSON.parse(config) as { services: { llama: { environment: Record<string, string> } } };
  return services.llama.environment['LLAMA_ARG_MMPROJ'];
}

it("gives llama.cpp's server of the profile llama the mmproj file of LLAMA_MMPROJ, or none", () => {
  expect([mmprojFileOf({ LLAMA_MMPROJ: 'mmproj.gguf' }), mmprojFileOf({})]).toEqual(['/models/mmproj.gguf', '']);
});

it('passes valid upstream settings to the workers of the profile llama', () => {
  const command = ['compose', '--profile', 'llama', 'config', '--format', 'json', 'worker-llama'];
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, LLAMA_ID: 'smollm2' };
  const config = execFileSync('docker', command, { cwd: root, env, encoding: 'utf8' });
  const { services } = JSON.parse(config) as { services: { 'worker-llama': { environment: Record<string, string> } } };
  expect(loadConfig('worker', services['worker-llama'].environment)).toMatchObject({
    executor: 'http',
    upstreamApi: 'llama.cpp',
    upstreamUrl: 'http://llama:8080',
    modelId: 'smollm2',
  });
});

it('mounts and configures a custom executor module with the override file of docs/executors.md', () => {
  const document = readFileSync(join(root, 'docs/executors.md'), 'utf8');
  const [, override] = /```yaml\n(.*?)```/s.exec(document)!;
  // Model settings for the image workers must not reach the custom worker.
  const { environment, volumes = [] } = serviceOf('worker-parrot', {
    override: override!,
    file: 'MODEL_DIR=models/mine\nMODEL_ID=mine\nMODEL_DTYPE=fp16\n',
  });
  expect(loadConfig('worker', environment)).toMatchObject({ executor: './executors/parrot.mjs', modelId: 'parrot' });
  expect(volumes.map(({ target }) => target)).toEqual(['/app/models', '/app/executors']);
});

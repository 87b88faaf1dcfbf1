import { resolve } from 'node:path';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { ConfigError } from './config-error.ts';
import { loadConfig, settingsInForce } from './load-config.ts';
import { appNames, type ReaderName } from './setting.ts';
import { heartbeatMs } from './settings.ts';

function problemsOf(app: ReaderName, environment: Record<string, string>): readonly string[] {
  try {
    loadConfig(app, environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('loadConfig', () => {
  it.each(appNames)('gives %s a frozen configuration from an empty environment', (app) => {
    const config = loadConfig(app, {});
    expect(config).toMatchObject({ redisUrl: 'redis://127.0.0.1:6379', redisPrefix: 'darkroom', resultTtlS: 3600 });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('returns only the settings that an app reads, typed', () => {
    const api = loadConfig('api', {});
    expect(Object.keys(api)).not.toContain('modelDir');
    expectTypeOf(api.port).toEqualTypeOf<number>();
    expectTypeOf(api.defaultModel).toEqualTypeOf<string | undefined>();
    expectTypeOf(api.unservedModels).toEqualTypeOf<'accept' | 'refuse'>();
    expectTypeOf(api).not.toHaveProperty('modelDir');
    const worker = loadConfig('worker', {});
    expectTypeOf(worker.modelId).toEqualTypeOf<string>();
    expectTypeOf(worker.workerId).toEqualTypeOf<string>();
    expectTypeOf(loadConfig('batch-former', {}).batchMaxSize).toEqualTypeOf<number>();
  });

  it('returns the hub settings for the model command, and no settings of services', () => {
    const model = loadConfig('model', { HF_ENDPOINT: 'http://127.0.0.1:9/hub/', HF_TOKEN: 'hf_x', REDIS_URL: 'wrong' });
    expect(model).toEqual({
      hubEndpoint: 'http://127.0.0.1:9/hub',
      hubToken: 'hf_x',
      modelDtype: { all: 'auto', parts: {} },
      devices: ['cpu'],
      hasLowMemory: false,
      safetyChecker: 'auto',
      numThreads: 0,
    });
    expectTypeOf(model.hubToken).toEqualTypeOf<string | undefined>();
    expect(problemsOf('model', { HF_ENDPOINT: 'huggingface.co', HF_TOKEN: 'secret' })).toEqual([
      'HF_TOKEN is invalid (value hidden), expected a token, which begins hf_',
      'HF_ENDPOINT is "huggingface.co", expected an http or https URL',
    ]);
  });

  it('parses MODEL_DTYPE for single parts', () => {
    const { modelDtype } = loadConfig('worker', { MODEL_DTYPE: 'int8,vae_decoder=fp16' });
    expect(modelDtype).toEqual({ all: 'int8', parts: { vae_decoder: 'fp16' } });
    expect(problemsOf('worker', { MODEL_DTYPE: 'int8,vae=fp16' })).toEqual([
      'MODEL_DTYPE is "int8,vae=fp16", expected auto, fp32, fp16, int8 or (of text) q4, for single parts as in int8,vae_decoder=fp16; ' +
        'the parts are text_encoder, text_encoder_2, text_encoder_3, unet, transformer, vae_decoder, vae_encoder',
    ]);
  });

  it('treats an empty value as not set', () => {
    const environment = { BATCH_MAX_SIZE: ' 16 ', ENABLE_PROMPT_BATCHING: '', BATCH_TIMEOUT_MS: '' };
    expect(loadConfig('batch-former', environment)).toMatchObject({ batchMaxSize: 16, batchTimeoutMs: 10 });
  });

  it.each<[Record<string, string>, number]>([
    [{ ENABLE_PROMPT_BATCHING: 'false' }, 1],
    [{ ENABLE_PROMPT_BATCHING: '0', BATCH_MAX_SIZE: '16' }, 1],
    [{ ENABLE_PROMPT_BATCHING: 'true', BATCH_MAX_SIZE: '16' }, 16],
    [{ ENABLE_PROMPT_BATCHING: 'true' }, 8],
  ])('treats ENABLE_PROMPT_BATCHING=false as BATCH_MAX_SIZE=1: %j', (environment, batchMaxSize) => {
    for (const app of ['batch-former', 'worker'] as const) {
      expect(loadConfig(app, environment)).toMatchObject({ batchMaxSize });
      const shown = settingsInForce(app, environment).find(({ variable }) => variable === 'BATCH_MAX_SIZE');
      expect(shown).toMatchObject({ shown: String(batchMaxSize) });
    }
  });

  it("computes the worker's defaults", () => {
    const worker = loadConfig('worker', {});
    expect(worker).toMatchObject({ modelDir: resolve('models/emoji-sd'), modelId: 'emoji-sd' });
    expect(worker.workerId).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
    expect(loadConfig('worker', {}).workerId).not.toBe(worker.workerId);
    expect(loadConfig('worker', { MODEL_DIR: '/models/sd1.5' }).modelId).toBe('sd1.5');
    expect(loadConfig('worker', { MODEL_ID: 'mine', WORKER_ID: 'w1' })).toMatchObject({
      modelId: 'mine',
      workerId: 'w1',
    });
  });

  it('parses CUDA_VISIBLE_DEVICES and NUM_WORKER_PROCESSES', () => {
    expect(loadConfig('worker', {})).not.toHaveProperty('numWorkerProcesses', expect.anything());
    expect(loadConfig('worker', { NUM_WORKER_PROCESSES: '2', CUDA_VISIBLE_DEVICES: '3,GPU-8f' })).toMatchObject({
      numWorkerProcesses: 2,
      cudaVisibleDevices: ['3', 'GPU-8f'],
    });
    expect(problemsOf('worker', { NUM_WORKER_PROCESSES: '0', CUDA_VISIBLE_DEVICES: '0, 1' })).toEqual([
      'NUM_WORKER_PROCESSES is "0", expected a whole number from 1 to 64',
      'CUDA_VISIBLE_DEVICES is "0, 1", expected names without spaces, with commas between them',
    ]);
  });

  it('requires a free metrics port for each worker process', () => {
    for (const [METRICS_PORT, NUM_WORKER_PROCESSES] of [
      ['65531', '4'],
      ['0', '4'],
      ['65535', '1'],
    ] as const)
      expect(problemsOf('worker', { METRICS_PORT, NUM_WORKER_PROCESSES })).toEqual([]);
    expect(problemsOf('worker', { METRICS_PORT: '65535' })).toEqual([]);
    expect(problemsOf('worker', { METRICS_PORT: '65532', NUM_WORKER_PROCESSES: '4' })).toEqual([
      'METRICS_PORT is 65532, expected at most 65531: the 4 workers of NUM_WORKER_PROCESSES use the ports after it',
    ]);
  });

  it('requires MODEL_ID when the name of the directory is not a valid id', () => {
    expect(problemsOf('worker', { MODEL_DIR: '/models/Stable Diffusion' })).toEqual([
      expect.stringMatching(/^MODEL_ID is not set and the name of MODEL_DIR, "Stable Diffusion", cannot be an id/),
    ]);
    expect(problemsOf('worker', { MODEL_DIR: '/models/Stable Diffusion', MODEL_ID: 'sd' })).toEqual([]);
  });

  it('reports all problems at once, with variable, value and range', () => {
    expect(
      problemsOf('batch-former', { BATCH_MAX_SIZE: 'fifty', BATCH_TIMEOUT_MS: '-1', ENABLE_PROMPT_BATCHING: 'maybe' }),
    ).toEqual([
      'ENABLE_PROMPT_BATCHING is "maybe", expected true or false',
      'BATCH_MAX_SIZE is "fifty", expected a whole number from 1 to 256',
      'BATCH_TIMEOUT_MS is "-1", expected a whole number from 0 to 60000',
    ]);
  });

  it.each(['1.5', '1e3', '0x10', '٣', '9'.repeat(20), 'NaN'])('refuses %j as a whole number', (text) =>
    expect(problemsOf('api', { QUEUE_MAX_LENGTH: text })).toHaveLength(1),
  );

  it.each([
    'redis://10.0.0.1:6380/2',
    'rediss://user:pw@redis.example:6379',
    'unix:///run/redis.sock',
    'redis-cluster://10.0.0.1:6379,10.0.0.2:6379',
    'rediss-sentinel://user:pw@a.example,b.example:26380/mymaster',
  ])('accepts %s as REDIS_URL', (url) => expect(loadConfig('janitor', { REDIS_URL: url }).redisUrl).toBe(url));

  it.each(['redis://a:6379,b:6379', 'redis-cluster://a/0', 'redis-sentinel://a:26379', 'redis-cluster://a:99999'])(
    'refuses %s',
    (url) =>
      expect(problemsOf('janitor', { REDIS_URL: url })).toEqual([
        expect.stringMatching(/^REDIS_URL is .*, expected redis:.*redis-cluster:.*redis-sentinel:/),
      ]),
  );

  it('does not print the password of a wrong URL', () => {
    const [problem] = problemsOf('janitor', { REDIS_URL: 'http://user:s3cret@host' });
    expect(problem).toMatch(/^REDIS_URL is "http:\/\/user:\*\*\*@host", expected redis:/);
    const [many] = problemsOf('janitor', { REDIS_URL: 'redis-sentinel://user:s3@cret@a,b' });
    expect(many).toMatch(/^REDIS_URL is "redis-sentinel:\/\/user:\*\*\*@a,b", expected redis:/);
  });

  it('requires WORKER_TTL_MS to be more than twice the interval of heartbeats', () => {
    expect(problemsOf('janitor', { WORKER_TTL_MS: '2000' })).toEqual([
      'WORKER_TTL_MS is "2000", expected a whole number from 2500 to 600000',
    ]);
    expect(2500).toBeGreaterThan(2 * heartbeatMs);
  });

  it('suggests a setting for a misspelled variable', () => {
    expect(problemsOf('api', { BATCH_MAXSIZE: '4', QUEUE_MAX_LENTGH: '7', log_level: 'debug' })).toEqual([
      'BATCH_MAXSIZE is not a setting; did you mean BATCH_MAX_SIZE?',
      'QUEUE_MAX_LENTGH is not a setting; did you mean QUEUE_MAX_LENGTH?',
      'log_level is not a setting; did you mean LOG_LEVEL?',
    ]);
  });

  it('ignores variables of other programs', () => {
    const foreign = { HOSTNAME: 'a', POST: 'b', REDIS_PORT: 'c', REDIS_HOST: 'd', LOG_DIR: 'e', MODEL_DIRS: '' };
    expect(problemsOf('api', { ...foreign, LOGLEVEL: 'x', LOG_LEVEL: 'info' })).toEqual([]);
    // Set in all NVIDIA images.
    expect(problemsOf('worker', { NVIDIA_VISIBLE_DEVICES: 'all', NVIDIA_DRIVER_CAPABILITIES: 'compute' })).toEqual([]);
  });
});

describe('the API', () => {
  it.each(['debug', 'DEBUG', 'Debug'])('accepts LOG_LEVEL in any case: %s', (level) => {
    expect(loadConfig('api', { LOG_LEVEL: level }).logLevel).toBe('debug');
  });

  it('requires keys or OPEN_ACCESS to listen beyond this machine', () => {
    const [problem] = problemsOf('api', { HOST: '0.0.0.0' });
    expect(problem).toMatch(/^HOST is "0\.0\.0\.0" and there are no API keys/);
    const accepted: Record<string, string>[] = [
      { HOST: '127.0.0.1' },
      { HOST: '::1' },
      { HOST: 'localhost' },
      { HOST: '0.0.0.0', API_KEYS: 'alice:secret-of-alice-1' },
      { HOST: '0.0.0.0', API_KEYS_FILE: 'keys.json' },
      { HOST: '0.0.0.0', OPEN_ACCESS: 'true' },
    ];
    for (const environment of accepted)
      expect([environment, problemsOf('api', environment)]).toEqual([environment, []]);
  });

  it('parses API keys with their names, and never prints an invalid one', () => {
    expect(loadConfig('api', { API_KEYS: 'alice:a:b-and-12-more-x, bob:c-and-14-more-yz' }).apiKeys).toEqual([
      { name: 'alice', key: 'a:b-and-12-more-x' },
      { name: 'bob', key: 'c-and-14-more-yz' },
    ]);
    for (const keys of [
      's3cret-of-alice-1',
      'alice:',
      ':s3cret-of-alice-1',
      'alice:s3cret-of-alice-1,',
      'al ice:s3cret-of-alice-1',
      '*:s3cret-of-alice-1',
    ]) {
      const [problem] = problemsOf('api', { API_KEYS: keys });
      expect(problem).toMatch(/^API_KEYS is invalid \(value hidden\), expected name:key pairs/);
      expect(problem).not.toContain('s3cret');
    }
  });

  it.each(['API_KEYS', 'ADMIN_KEYS'])('refuses a key of %s shorter than 16 characters without printing it', (name) => {
    for (const key of ['s', 's3cret', 's3cret-of-15-ch'])
      expect(problemsOf('api', { [name]: `bob:long-enough-for-it,alice:${key}` })).toEqual([
        expect.stringMatching(`^${name} is invalid .value hidden., expected name:key pairs .* at least 16 characters`),
      ]);
    expect(problemsOf('api', { [name]: 'alice:s3cret-of-16-chr' })).toEqual([]);
  });

  it('parses origins as browsers send them', () => {
    const origins = 'https://shop.example, http://localhost:3000';
    expect(loadConfig('api', { CORS_ORIGINS: origins }).corsOrigins).toEqual(origins.split(', '));
    for (const wrong of ['shop.example', 'https://shop.example/', 'https://shop.example/path'])
      expect(problemsOf('api', { CORS_ORIGINS: wrong })[0]).toMatch(/^CORS_ORIGINS is .* expected \* or origins/);
  });
});

describe('an executor', () => {
  const http = { EXECUTOR: 'http', UPSTREAM_URL: 'http://127.0.0.1:8000/v1', MODEL_ID: 'qwen3-0.6b' };

  it('can be another server', () => {
    expect(loadConfig('worker', http)).toMatchObject({
      executor: 'http',
      upstreamUrl: 'http://127.0.0.1:8000/v1',
      upstreamApi: 'openai',
      upstreamSlots: undefined,
      modelId: 'qwen3-0.6b',
    });
    expect(loadConfig('worker', {})).toMatchObject({ executor: 'process', upstreamUrl: undefined });
  });

  it.each([
    ['./my-executor.mjs', 'my-executor'],
    ['../elsewhere/mine.js', 'mine'],
    ['/opt/executors/my.thing.ts', 'my.thing'],
    ['my-package', 'my-package'],
    ['@somebody/painter', 'painter'],
    ['@somebody/painters/oil.mjs', 'oil'],
  ])('can be a custom module: %s', (executor, modelId) => {
    expect(loadConfig('worker', { EXECUTOR: executor })).toMatchObject({ executor, modelId });
    expect(loadConfig('worker', { EXECUTOR: executor, MODEL_ID: 'other' })).toMatchObject({ modelId: 'other' });
  });

  it.each([
    [{ ...http, UPSTREAM_URL: '' }, ['UPSTREAM_URL is not set, expected one with EXECUTOR=http']],
    [{ ...http, MODEL_ID: '' }, ['MODEL_ID is not set, expected one with EXECUTOR=http']],
    [
      { ...http, MODEL_DIR: 'models/emoji-sd' },
      ['MODEL_DIR is set and EXECUTOR is http, expected one of the two: another server runs the model'],
    ],
    [{ UPSTREAM_KEY: 'sk-secret' }, ['UPSTREAM_KEY is set and EXECUTOR is process, expected EXECUTOR=http with it']],
    [
      { ...http, EXECUTOR: 'https' },
      [
        'EXECUTOR is "https", expected process, http, python, the path of a module (which begins with . or /) or the name of a package',
      ],
    ],
    [
      { EXECUTOR: './mine.mjs', MODEL_DTYPE: 'int8', UPSTREAM_SLOTS: '2' },
      [
        'UPSTREAM_SLOTS is set and EXECUTOR is ./mine.mjs, expected EXECUTOR=http with it',
        'MODEL_DTYPE is set and EXECUTOR is ./mine.mjs, expected one of the two: the module brings its own model',
      ],
    ],
    [
      { EXECUTOR: './My Executor.mjs' },
      [
        'MODEL_ID is not set and the name of EXECUTOR, "My Executor", cannot be an id: expected 1 to 64 characters of a-z, 0-9, ".", "_" and "-", with a letter or digit at both ends',
      ],
    ],
    [
      { EXECUTOR: 'my executor' },
      [
        'EXECUTOR is "my executor", expected process, http, python, the path of a module (which begins with . or /) or the name of a package',
      ],
    ],
    [
      { ...http, UPSTREAM_URL: 'http://ann:secret@127.0.0.1' },
      ['UPSTREAM_URL is "http://ann:***@127.0.0.1", expected an http or https URL without user, password and query'],
    ],
    [
      { ...http, UPSTREAM_KEY: 'a secret' },
      ['UPSTREAM_KEY is invalid (value hidden), expected text of ASCII without spaces'],
    ],
  ])('reports settings that exclude each other: %j', (environment, problems) =>
    expect(problemsOf('worker', environment)).toEqual(problems),
  );
});

describe('PUBLIC_URL and TRUSTED_PROXIES', () => {
  it.each([
    ['https://example.com/darkroom/', 'https://example.com/darkroom'],
    ['http://localhost:8080', 'http://localhost:8080'],
    ['https://EXAMPLE.com/a/b', 'https://example.com/a/b'],
  ])('%s is read as %s', (text, url) => {
    expect(loadConfig('api', { PUBLIC_URL: text }).publicUrl).toBe(url);
    expect(loadConfig('webhook-sender', { PUBLIC_URL: text }).publicUrl).toBe(url);
  });

  it.each([
    'example.com',
    'ftp://example.com',
    'https://me:key@example.com',
    'https://example.com/?a=b',
    'https://example.com/a%20b',
    'https://example.com/#x',
    '/darkroom',
  ])('PUBLIC_URL=%s is refused', (text) =>
    expect(() => loadConfig('api', { PUBLIC_URL: text })).toThrow(/PUBLIC_URL is .*expected an http or https URL/),
  );

  it.each(['10.0.0.0/33', 'proxy', '10.0.0', 'fd00::/129', '10.0.0.1/8/8', '10.0.0.1,'])(
    'TRUSTED_PROXIES=%s is refused',
    (text) =>
      expect(() => loadConfig('api', { TRUSTED_PROXIES: text })).toThrow(/TRUSTED_PROXIES is .*expected IP addresses/),
  );
});

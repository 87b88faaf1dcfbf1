/** The commands and fragments of docs/kubernetes.md, run unchanged, and the manifests that they build. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AppName, appNames, loadConfig } from '@darkroom/config';
import { checkServer, connectStore, isStoreReachable } from '@darkroom/store';
import { freePorts, startRedisServer } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { loadApiKeys } from '../../apps/api/src/auth/api-keys.ts';
import { settings } from '../../libs/config/src/settings.ts';
import { blocksOf, type DocumentedSystem, writeDocumentedSystem } from './documented-system.ts';
import { build, buildText, componentOf, findSchemaErrors, type Manifest, skipReason } from './manifests.ts';
import { type Container, type Workload, workloadsOf } from './manifests.ts';

const reason = skipReason();
let system: DocumentedSystem;

describe.skipIf(reason !== undefined)('docs/kubernetes.md', () => {
  beforeAll(async () => {
    system = await writeDocumentedSystem();
  });
  afterAll(() => system?.remove());

  it('its commands build valid manifests each time', async () => {
    expect(system.texts).toHaveLength(3);
    for (const text of system.texts.slice(0, -1)) expect(await findSchemaErrors(text, ['1.37.0'])).toEqual([]);
    expect(await findSchemaErrors(system.texts.at(-1)!)).toEqual([]);
    expect(workloadsOf(system.manifests).map(({ metadata }) => metadata.name)).toEqual(
      expect.arrayContaining(['darkroom-redis', 'darkroom-worker', 'darkroom-worker-photo']),
    );
    expect(system.manifests.map(({ kind }) => kind)).toContain('HTTPRoute');
  });

  it('every container has valid settings of its app', () => {
    for (const workload of workloadsOf(system.manifests)) {
      if (componentOf(workload) === 'redis') continue;
      const app = appNames.find((name) => name === componentOf(workload))!;
      const environment = environmentOf(workload, system.manifests);
      expect(Object.keys(environment).filter((name) => !isSettingOf(app, name))).toEqual([]);
      const config = loadConfig(app, environment);
      expect(config).toMatchObject({ metricsHost: '0.0.0.0', metricsPort: 9090, resultTtlS: 7200, logLevel: 'info' });
      const ports = workload.spec.template.spec.containers[0]?.ports ?? [];
      expect(ports).toContainEqual(expect.objectContaining({ name: 'metrics', containerPort: config.metricsPort }));
    }
  });

  it("the API listens on its Service's port, and accepts the printed key", () => {
    const api = workloadOf('darkroom-api');
    const environment = environmentOf(api, system.manifests);
    const config = loadConfig('api', environment);
    expect(config).toMatchObject({ host: '0.0.0.0', port: 8080, unservedModels: 'accept' });
    expect(api.spec.template.spec.containers[0]?.ports).toContainEqual({ name: 'http', containerPort: config.port });
    const { volumes = [] } = api.spec.template.spec;
    const secret = volumes.find(({ name }) => name === 'api-keys')?.secret?.secretName ?? '';
    const file = join(system.directory, 'mounted-keys.json');
    writeFileSync(file, secretValue(system.manifests, secret, 'keys.json'));
    expect(environment['API_KEYS_FILE']).toBe('/etc/darkroom/api-keys/keys.json');
    const keys = loadApiKeys({ apiKeys: undefined, adminKeys: undefined, apiKeysFile: file });
    const key = /^the key of alice: (?<key>.+)$/m.exec(system.output)!.groups!['key']!;
    expect(keys.get(createHash('sha256').update(key).digest('hex'))).toMatchObject({ name: 'alice' });
  });

  it('each worker serves one model, labelled with its name', () => {
    const workers = workloadsOf(system.manifests).filter((workload) => componentOf(workload) === 'worker');
    const models = workers.map((worker) => {
      const { modelId, modelDir, modelDtype, devices } = loadConfig('worker', environmentOf(worker, system.manifests));
      return { modelId, modelDir, modelDtype, devices, label: worker.spec.template.metadata.labels['model'] };
    });
    expect(models).toEqual([
      {
        modelId: 'emoji-sd',
        modelDir: '/app/models/emoji-sd',
        modelDtype: { all: 'auto', parts: {} },
        devices: ['cpu'],
        label: 'emoji-sd',
      },
      ...['emoji-writer', 'emoji-writer-diffusion'].map((model) => ({
        modelId: model,
        modelDir: `/app/models/${model}`,
        modelDtype: { all: 'auto', parts: {} },
        devices: ['cpu'],
        label: model,
      })),
      {
        modelId: 'photo',
        modelDir: '/models/photo',
        modelDtype: { all: 'auto', parts: {} },
        devices: ['cuda'],
        label: 'photo',
      },
    ]);
  });

  it('every app connects to the documented Redis as its own user and passes the startup check', async () => {
    const redis = workloadOf('darkroom-redis');
    const { containers, volumes = [] } = redis.spec.template.spec;
    const usersSecret = volumes.find(({ name }) => name === 'users')?.secret?.secretName ?? '';
    const users = secretValue(system.manifests, usersSecret, 'users.acl');
    expect(users).not.toContain('change-me');
    const [port = 0] = await freePorts(1);
    const server = await startRedisServer({
      program: containers[0]!.command![0]!,
      args(directory) {
        writeFileSync(join(directory, 'users.acl'), users);
        const given = containers[0]!.args!.map((argument) =>
          argument.replace('/data', directory).replace('/etc/redis/', ''),
        );
        return [...given, '--port', `${port}`, '--bind', '127.0.0.1'];
      },
    });
    onTestFinished(() => server.stop());
    for (const app of appNames) {
      const worker = app === 'worker' ? 'darkroom-worker' : `darkroom-${app}`;
      const { redisUrl } = loadConfig(app, environmentOf(workloadOf(worker), system.manifests));
      expect(redisUrl).toContain(`redis://${app}:`);
      const store = connectStore({ url: redisUrl.replace(/@darkroom-redis:6379$/, `@127.0.0.1:${port}`) });
      onTestFinished(() => store.close());
      // Waits for the connection.
      expect(await checkServer(store)).toEqual({ refusal: undefined, warnings: [] });
      expect(await isStoreReachable(store, 60_000)).toBe(true);
    }
  });

  it('the documented URLs of managed Redis, Cluster and Sentinel are valid settings', () => {
    const files = blocksOf('env').map((block) => Object.fromEntries(block.trim().split('\n').map(splitLine)));
    expect(files.map((lines) => Object.keys(lines))).toEqual([
      ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'],
      ['api'],
      ['api', 'sentinel-password'],
    ]);
    for (const { 'sentinel-password': password, ...urls } of files)
      for (const [app, url] of Object.entries(urls)) {
        const environment = { REDIS_URL: url, REDIS_SENTINEL_PASSWORD: password };
        expect(loadConfig(app as AppName, environment)).toMatchObject({ redisUrl: url });
      }
  });

  it('the YAML fragments have the documented effect', async () => {
    const [authority, narrowed, unscaled] = blocksOf('yaml') as [string, string, string];
    expect(blocksOf('yaml')).toHaveLength(3);

    writeFileSync(join(system.directory, 'ca.crt'), 'a certificate');
    const trusting = await overlayWith(`components: [../k8s/components/redis-ca]\n${authority}`, 'authority');
    for (const workload of workloadsOf(trusting)) {
      const { containers, volumes = [] } = workload.spec.template.spec;
      const variable = containers[0]?.env?.find(({ name }) => name === 'NODE_EXTRA_CA_CERTS');
      const mount = containers[0]?.volumeMounts?.find(({ name }) => name === 'redis-ca');
      expect(variable?.value).toBe(`${mount?.mountPath}/ca.crt`);
      const source = volumes.find(({ name }) => name === 'redis-ca')?.configMap?.name;
      expect(trusting.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === source)?.data).toEqual({
        'ca.crt': 'a certificate',
      });
    }

    const policy = (await overlayWith(narrowed, 'narrowed')).find(({ metadata }) => metadata.name === 'to-redis');
    expect(policy?.spec).toMatchObject({ egress: [{ to: [{ ipBlock: { cidr: '10.20.0.0/24' } }] }] });

    const fixed = await overlayWith(unscaled, 'unscaled');
    expect(fixed.map(({ kind }) => kind)).not.toContain('ScaledObject');
    const workers = workloadsOf(fixed).filter((workload) => componentOf(workload) === 'worker');
    expect(workers.map(({ metadata, spec }) => [metadata.name, spec.replicas])).toEqual([
      ['darkroom-worker', 2],
      ['darkroom-worker-emoji-writer', 1],
      ['darkroom-worker-emoji-writer-diffusion', 1],
    ]);
  });
});

/** Builds a user's kustomization on top of the cpu overlay. */
async function overlayWith(fragment: string, name: string): Promise<Manifest[]> {
  const directory = join(system.directory, name);
  mkdirSync(directory);
  writeFileSync(join(directory, 'ca.crt'), 'a certificate');
  writeFileSync(
    join(directory, 'kustomization.yaml'),
    `namespace: darkroom\nresources: [../k8s/overlays/cpu]\n${fragment}`,
  );
  expect(await findSchemaErrors(await buildText(directory), ['1.37.0'])).toEqual([]);
  return build(directory);
}

function workloadOf(name: string): Workload {
  return workloadsOf(system.manifests).find(({ metadata }) => metadata.name === name)!;
}

function isSettingOf(app: AppName, variable: string): boolean {
  const setting = Object.values(settings).find((candidate) => candidate.variable === variable);
  return setting !== undefined && (setting.apps as readonly AppName[]).includes(app);
}

/** Returns the environment that the cluster passes to the workload's first container. */
function environmentOf(workload: Workload, manifests: readonly Manifest[]): Record<string, string> {
  const [container] = workload.spec.template.spec.containers as [Container];
  const environment: Record<string, string> = {};
  for (const { configMapRef } of container.envFrom ?? [])
    Object.assign(environment, find(manifests, 'ConfigMap', configMapRef?.name).data);
  for (const { name, value, valueFrom } of container.env ?? []) {
    const { secretKeyRef, resourceFieldRef } = valueFrom ?? {};
    if (value !== undefined) environment[name] = value;
    else if (resourceFieldRef !== undefined) environment[name] = String(container.resources?.requests?.['cpu']);
    else if (secretKeyRef?.optional !== true)
      environment[name] = secretValue(manifests, secretKeyRef!.name, secretKeyRef!.key);
  }
  return environment;
}

function secretValue(manifests: readonly Manifest[], name: string, key: string): string {
  const encoded = find(manifests, 'Secret', name).data?.[key];
  if (encoded === undefined) throw new Error(`Secret ${name} has no ${key}`);
  return Buffer.from(encoded, 'base64').toString();
}

function find(manifests: readonly Manifest[], kind: string, name: string | undefined): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
  if (found === undefined) throw new Error(`there is no ${kind} ${name}`);
  return found;
}

function splitLine(line: string): [name: string, value: string] {
  const [name = '', ...value] = line.split('=');
  return [name, value.join('=')];
}

/** KEDA triggers of the workers against KEDA's schema and the janitor's metrics. */
import { readFileSync } from 'node:fs';
import { loadConfig } from '@darkroom/config';
import type { ModelCard } from '@darkroom/core';
import { Metrics } from '@darkroom/service';
import { admitRequest, publishModel, registerWorker, type StoreConnection } from '@darkroom/store';
import {
  dispatchNext,
  type Exposition,
  openTestStore,
  parseExposition,
  silentLogger,
  testEnvelope,
} from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reportQueues } from '../../apps/janitor/src/report-queues.ts';
import { type DocumentedSystem, writeDocumentedSystem } from './documented-system.ts';
import { type Manifest, readyTools, skipReason, workloadsOf } from './manifests.ts';

const reason = skipReason();

interface ScaledObject extends Manifest {
  spec: {
    scaleTargetRef: { name: string };
    minReplicaCount: number;
    fallback: { replicas: number; behavior: string };
    triggers: { type: string; name: string; metadata: Record<string, string> }[];
    advanced: { scalingModifiers: { formula: string; target: string } };
  };
}

describe.skipIf(reason !== undefined)('KEDA autoscaling of workers', () => {
  let system: DocumentedSystem;
  let scalers: ScaledObject[];
  beforeAll(async () => {
    system = await writeDocumentedSystem();
    scalers = system.manifests.filter(({ kind }) => kind === 'ScaledObject') as ScaledObject[];
  });
  afterAll(() => system?.remove());

  it('triggers have only fields that KEDA knows', () => {
    type Field = { name: string; optional?: boolean; default?: string; allowedValue?: string[] };
    const known = JSON.parse(readFileSync(readyTools().kedaScalers, 'utf8')) as {
      scalers: { type: string; parameters: Field[] }[];
    };
    for (const { type, metadata } of scalers.flatMap(({ spec }) => spec.triggers)) {
      const fields = known.scalers.find((scaler) => scaler.type === type)?.parameters ?? [];
      for (const [name, value] of Object.entries(metadata)) {
        const field = fields.find((each) => each.name === name);
        expect(field, `${type} ${name}`).toBeDefined();
        expect(field?.allowedValue ?? [value]).toContain(value);
      }
      const needed = fields.filter((field) => field.optional !== true && field.default === undefined);
      expect(Object.keys(metadata)).toEqual(expect.arrayContaining(needed.map(({ name }) => name)));
    }
  });

  it('each model scales by its own queue: Deployment, label and metric names agree', () => {
    const models = scalers.map(({ metadata, spec }) => {
      const worker = workloadsOf(system.manifests).find((each) => each.metadata.name === spec.scaleTargetRef.name);
      const model = worker?.spec.template.metadata.labels['model'];
      expect(metadata.labels?.['model']).toBe(model);
      expect(spec.triggers.map((trigger) => trigger.metadata['valueLocation'])).toEqual([
        `darkroom_queue_requests{model="${model}"}`,
        `darkroom_running_requests{model="${model}"}`,
      ]);
      return model;
    });
    expect(models).toEqual(['emoji-sd', 'emoji-writer', 'emoji-writer-diffusion', 'photo']);
  });

  it("triggers query the janitor's Service", () => {
    type Service = { ports: { name: string; port: number }[] };
    const janitor = system.manifests.find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name === 'darkroom-janitor',
    )!;
    const { port } = (janitor.spec as Service).ports[0]!;
    const { name, namespace } = janitor.metadata;
    for (const { metadata } of scalers.flatMap(({ spec }) => spec.triggers))
      expect(metadata['url']).toBe(`http://${name}.${namespace}.svc:${port}/metrics`);
  });

  it('one replica per BATCH_MAX_SIZE queued and running requests, down to zero', () => {
    const { batchMaxSize } = loadConfig('worker', { MODEL_DIR: '/app/models/emoji-sd' });
    for (const { spec } of scalers) {
      const { formula, target } = spec.advanced.scalingModifiers;
      expect(formula).toBe(spec.triggers.map(({ name }) => name).join(' + '));
      expect(target).toBe(String(batchMaxSize));
      expect(spec.minReplicaCount).toBe(0);
      // Without a fallback, a missing metric would count as 0.
      expect(spec.fallback).toMatchObject({ replicas: 1, behavior: 'currentReplicasIfHigher' });
    }
  });

  describe('janitor metrics for KEDA', () => {
    let locations: string[];
    beforeAll(() => {
      locations = scalers[0]!.spec.triggers.map(({ metadata }) => metadata['valueLocation']!);
    });

    it('report queued and running requests', async () => {
      const store = openTestStore();
      await publishModel(store, { id: 'emoji-sd' } as ModelCard);
      const page = openJanitorPage(store);
      expect(readAt(await page(), locations)).toEqual([0, 0]);
      await admit(store);
      expect(readAt(await page(), locations)).toEqual([1, 0]);
      await lease(store);
      await admit(store);
      expect(readAt(await page(), locations)).toEqual([1, 1]);
    });

    it('are missing for a model that no worker has published, which KEDA treats as an error', async () => {
      const page = openJanitorPage(openTestStore());
      expect(readAt(await page(), locations)).toEqual([undefined, undefined]);
    });
  });
});

function openJanitorPage(store: StoreConnection): () => Promise<Exposition> {
  const metrics = new Metrics({ app: 'janitor', log: silentLogger() });
  reportQueues({ store, metrics });
  return async () => parseExposition(await metrics.expose());
}

/** Reads a metric like KEDA: the first series that has the labels. */
function readAt(page: Exposition, locations: readonly string[]): (number | undefined)[] {
  return locations.map((location) => {
    const { name = '', model } = /^(?<name>\w+)\{model="(?<model>[^"]+)"\}$/.exec(location)!.groups!;
    return page.series(name).find(({ labels }) => labels['model'] === model)?.value;
  });
}

async function admit(store: StoreConnection): Promise<void> {
  const options = { queueMaxLength: 10, unserved: 'accept' } as const;
  const outcome = await admitRequest(store, testEnvelope({ model: 'emoji-sd' }), options);
  expect(outcome).toMatchObject({ status: 'admitted' });
}

async function lease(store: StoreConnection): Promise<void> {
  const worker = { shard: 'emoji-sd', workerId: 'w1', incarnation: 'i1' };
  await registerWorker(store, worker, { state: 'ready', capacity: 8, info: {} });
  expect(await dispatchNext(store, 1, { shard: worker.shard })).toHaveLength(1);
}

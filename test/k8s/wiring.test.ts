/** References between manifests: every name that a manifest refers to exists. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DocumentedSystem, writeDocumentedSystem } from './documented-system.ts';
import { build, overlays, type Manifest, type Selector, skipReason, type Workload, workloadsOf } from './manifests.ts';

const reason = skipReason();
/** Secrets that users create, as docs/kubernetes.md says. */
const userSecrets = ['darkroom-api-keys', 'darkroom-redis', 'darkroom-redis-users'];

type Scaler = { scaleTargetRef: { kind?: string; name: string } };

/** The fields that these tests read, by kind. */
interface Specs {
  Deployment: { replicas?: number };
  Service: { selector: Record<string, string>; ports: { port: number; targetPort: string }[] };
  PodDisruptionBudget: { selector: Selector; maxUnavailable: number };
  HorizontalPodAutoscaler: Scaler;
  ScaledObject: Scaler;
  HTTPRoute: { rules: { backendRefs: { name: string; port: number }[] }[] };
}

let documented: DocumentedSystem | undefined;
beforeAll(async () => {
  if (reason === undefined) documented = await writeDocumentedSystem();
});
afterAll(() => documented?.remove());

describe.skipIf(reason !== undefined).each([...overlays, 'test/k8s/with-redis', 'docs/kubernetes.md'])(
  '%s',
  (source) => {
    const read = async (): Promise<Manifest[]> =>
      source.endsWith('.md') ? [...documented!.manifests] : await build(source);
    it('all resources are in one namespace, with unique names', async () => {
      const manifests = await read();
      const ids = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
      expect(new Set(ids).size).toBe(ids.length);
      for (const { kind, metadata } of manifests)
        expect(kind === 'Namespace' ? metadata.name : metadata.namespace, `${kind} ${metadata.name}`).toBe('darkroom');
    });

    it('workloads select their own pods only', async () => {
      const workloads = workloadsOf(await read());
      for (const workload of workloads)
        expect(selected(workloads, workload.spec.selector)).toEqual([workload.metadata.name]);
    });

    it("a Service targets ports of one workload's pods", async () => {
      const manifests = await read();
      const workloads = workloadsOf(manifests);
      const services = ofKind(manifests, 'Service');
      expect(services.map(({ name }) => name)).toEqual(expect.arrayContaining(['darkroom-api', 'darkroom-janitor']));
      for (const { name, spec } of services) {
        expect(selected(workloads, { matchLabels: spec.selector })).toEqual([name]);
        const ports = portsOf(workloads.find(({ metadata }) => metadata.name === name)!);
        for (const { targetPort } of spec.ports) expect(ports).toContain(targetPort);
      }
    });

    it('every Deployment has a PodDisruptionBudget for its own pods', async () => {
      const manifests = await read();
      const workloads = workloadsOf(manifests);
      const budgets = ofKind(manifests, 'PodDisruptionBudget');
      for (const { name, spec } of budgets) {
        expect(selected(workloads, spec.selector)).toEqual([name]);
        // Allows draining a node that has the only pod of a Deployment.
        expect(spec.maxUnavailable).toBe(1);
      }
      const deployments = ofKind(manifests, 'Deployment').map(({ name }) => name);
      expect(budgets.map(({ name }) => name).toSorted()).toEqual(deployments.toSorted());
    });

    it('every autoscaler targets one Deployment that sets no replicas, and each such Deployment has one', async () => {
      const manifests = await read();
      const targets = (['HorizontalPodAutoscaler', 'ScaledObject'] as const).flatMap((kind) =>
        ofKind(manifests, kind).map(({ spec }) => spec.scaleTargetRef),
      );
      for (const { kind = 'Deployment' } of targets) expect(kind).toBe('Deployment');
      const unnumbered = ofKind(manifests, 'Deployment').filter(({ spec }) => spec.replicas === undefined);
      expect(targets.map(({ name }) => name).toSorted()).toEqual(unnumbered.map(({ name }) => name).toSorted());
    });

    it('ConfigMaps, Secrets and volumes that pods refer to exist, or users create them', async () => {
      const manifests = await read();
      const has = (kind: string, name: string): boolean =>
        manifests.some((manifest) => manifest.kind === kind && manifest.metadata.name === name);
      for (const { spec } of workloadsOf(manifests)) {
        const { containers, volumes = [] } = spec.template.spec;
        const claims = spec.volumeClaimTemplates?.map(({ metadata }) => metadata.name) ?? [];
        const configMaps = [
          ...containers.flatMap(({ envFrom = [] }) => envFrom.map(({ configMapRef }) => configMapRef!.name)),
          ...volumes.flatMap(({ configMap }) => configMap?.name ?? []),
        ].filter((name) => name !== 'darkroom-redis-ca');
        const secrets = [
          ...containers.flatMap(({ env = [] }) => env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? [])),
          ...volumes.flatMap(({ secret }) => secret?.secretName ?? []),
        ];
        expect(configMaps.filter((name) => !has('ConfigMap', name))).toEqual([]);
        expect(
          secrets.filter((name) => !(source.endsWith('.md') ? has('Secret', name) : userSecrets.includes(name))),
        ).toEqual([]);
        const mounted = containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name));
        expect(mounted.toSorted()).toEqual([...volumes.map(({ name }) => name), ...claims].toSorted());
      }
    });

    it('an HTTPRoute leads to a Service of this namespace', async () => {
      const manifests = await read();
      const services = ofKind(manifests, 'Service');
      const routes = ofKind(manifests, 'HTTPRoute');
      expect(routes).toHaveLength(source.endsWith('.md') ? 1 : 0);
      for (const { name, port } of routes.flatMap(({ spec }) => spec.rules.flatMap(({ backendRefs }) => backendRefs)))
        expect(services.find((service) => service.name === name)?.spec.ports.map((each) => each.port)).toContain(port);
    });
  },
);

function ofKind<Kind extends keyof Specs>(
  manifests: readonly Manifest[],
  kind: Kind,
): { name: string; spec: Specs[Kind] }[] {
  return manifests
    .filter((manifest) => manifest.kind === kind)
    .map(({ metadata, spec }) => ({ name: metadata.name, spec: spec as Specs[Kind] }));
}

function portsOf({ spec }: Workload): string[] {
  return spec.template.spec.containers.flatMap(({ ports }) => ports.map(({ name }) => name));
}

/** Returns the names of the workloads whose pods a selector matches. */
function selected(workloads: readonly Workload[], { matchLabels = {} }: Selector): string[] {
  return workloads
    .filter(({ spec: { template } }) =>
      Object.entries(matchLabels).every(([label, value]) => template.metadata.labels[label] === value),
    )
    .map(({ metadata }) => metadata.name);
}

/** Manifests as kustomize builds them. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { inject } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { kubernetesVersions, type KubernetesTools } from './kubernetes-tools.ts';

const root = new URL('../../', import.meta.url).pathname;

/** Overlays that can be applied unchanged once their Secrets exist. */
export const overlays = ['k8s/overlays/cpu', 'k8s/overlays/gpu'] as const;

export interface EnvironmentVariable {
  name: string;
  value?: string;
  valueFrom?: {
    secretKeyRef?: { name: string; key: string; optional?: boolean };
    resourceFieldRef?: { resource: string; divisor?: string };
  };
}

export interface Probe {
  httpGet?: { path: string; port: string };
  tcpSocket?: { port: string };
  periodSeconds?: number;
  timeoutSeconds?: number;
  failureThreshold?: number;
}

export interface Container {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: EnvironmentVariable[];
  envFrom?: { configMapRef?: { name: string } }[];
  ports: { name: string; containerPort: number }[];
  startupProbe?: Probe;
  readinessProbe?: Probe;
  livenessProbe?: Probe;
  lifecycle?: { preStop?: { sleep?: { seconds: number } } };
  resources?: { requests?: Record<string, string | number>; limits?: Record<string, string | number> };
  securityContext?: Record<string, unknown>;
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
}

export interface PodSpec {
  automountServiceAccountToken?: boolean;
  enableServiceLinks?: boolean;
  terminationGracePeriodSeconds: number;
  securityContext?: Record<string, unknown>;
  topologySpreadConstraints?: { topologyKey: string; labelSelector: Selector }[];
  initContainers?: Container[];
  containers: Container[];
  volumes?: { name: string; secret?: { secretName: string }; configMap?: { name: string } }[];
}

export interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** The fields that the tests read; the schema validator checks the others. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  data?: Record<string, string>;
  // Its type depends on the kind: readers cast it.
  spec?: unknown;
}

export interface Workload extends Manifest {
  spec: {
    replicas?: number;
    selector: Selector;
    volumeClaimTemplates?: { metadata: { name: string } }[];
    strategy?: { rollingUpdate?: { maxSurge?: number; maxUnavailable?: number } };
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
  };
}

export function readyTools(): Extract<KubernetesTools, { status: 'ready' }> {
  const tools = inject('kubernetesTools');
  if (tools.status !== 'ready') throw new Error(tools.reason);
  return tools;
}

/** Returns why these tests cannot run here, or undefined if they can. */
export function skipReason(): string | undefined {
  const tools = inject('kubernetesTools');
  return tools.status === 'ready' ? undefined : tools.reason;
}

/** Builds a directory with kustomize. A relative path starts at the repository's root. */
export async function buildText(directory: string): Promise<string> {
  const { stdout } = await promisify(execFile)(readyTools().kustomize, ['build', directory], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

export async function build(directory: string): Promise<Manifest[]> {
  return parseManifests(await buildText(directory));
}

export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as Manifest;
  });
}

export function workloadsOf(manifests: readonly Manifest[]): Workload[] {
  return manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet') as Workload[];
}

/** Returns the app of a workload, or `redis`. */
export function componentOf({ spec }: Workload): string {
  return spec.template.metadata.labels['app.kubernetes.io/component'] ?? '';
}

/** Validates manifests against each Kubernetes version. Returns the errors; unknown fields and kinds are errors. */
export async function findSchemaErrors(
  text: string,
  versions: readonly string[] = kubernetesVersions,
): Promise<string[]> {
  const { kubeconform, schemas } = readyTools();
  const faults: string[] = [];
  for (const version of versions) {
    const locations = [version, 'custom'].flatMap((directory) => [
      '-schema-location',
      `${schemas}/${directory}/{{.ResourceKind}}{{.KindSuffix}}.json`,
    ]);
    const run = promisify(execFile)(kubeconform, [
      '-strict',
      '-output',
      'json',
      '-kubernetes-version',
      version,
      ...locations,
    ]);
    run.child.stdin?.end(text);
    // kubeconform exits with 1 when it finds errors.
    const { stdout } = await run.catch((error: unknown) => error as { stdout: string });
    const { resources = [] } = JSON.parse(stdout) as { resources?: { kind: string; name: string; msg: string }[] };
    faults.push(...resources.map(({ kind, name, msg }) => `${version} ${kind} ${name}: ${msg}`));
  }
  return faults;
}

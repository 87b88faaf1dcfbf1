/** Settings that every pod must have, whichever app it runs. */
import { readFileSync } from 'node:fs';
import { maxStopMs } from '@darkroom/service';
import { describe, expect, it } from 'vitest';
import { drainMs } from '../../apps/api/src/server/api-server.ts';
import { build, componentOf, overlays, type PodSpec, skipReason, type Workload, workloadsOf } from './manifests.ts';

const reason = skipReason();
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

describe.skipIf(reason !== undefined).each([...overlays, 'test/k8s/with-redis'])('pods of %s', (directory) => {
  const each = async (look: (pod: PodSpec, workload: Workload) => void): Promise<void> => {
    const workloads = workloadsOf(await build(directory));
    expect(workloads.map(componentOf)).toEqual(
      expect.arrayContaining(['api', 'batch-former', 'janitor', 'webhook-sender', 'worker']),
    );
    for (const workload of workloads) look(workload.spec.template.spec, workload);
  };

  it('run without root, privileges or a writable file system', async () => {
    await each(({ containers, securityContext, automountServiceAccountToken, enableServiceLinks }) => {
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(securityContext?.['runAsUser']).toBeGreaterThan(0);
      expect({ automountServiceAccountToken, enableServiceLinks }).toEqual({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
      });
      for (const container of containers)
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    });
  });

  it('run images of this version, and pinned versions of external images', async () => {
    await each(({ containers: [container] }, workload) => {
      const component = componentOf(workload);
      // The text models are too small for a GPU.
      const isForGpus = directory.endsWith('gpu') && workload.metadata.name === 'darkroom-worker';
      const ours = `^darkroom-${component}${isForGpus ? '-cuda' : ''}:${version}$`;
      expect(container?.image).toMatch(new RegExp(component === 'redis' ? String.raw`^redis:\d+\.\d+$` : ours));
    });
  });

  it('request CPU and memory, and have limits', async () => {
    await each(({ containers }) => {
      for (const { resources: { requests = {}, limits = {} } = {} } of containers) {
        expect(Object.keys(requests).toSorted()).toEqual(['cpu', 'memory']);
        expect(Object.keys(limits)).toEqual(expect.arrayContaining(['cpu', 'memory']));
        expect(amount(limits['cpu'])).toBeGreaterThanOrEqual(amount(requests['cpu']));
        expect(amount(limits['memory'])).toBeGreaterThanOrEqual(amount(requests['memory']));
      }
    });
  });

  it('have liveness and readiness probes on ports that exist', async () => {
    await each(({ containers }, workload) => {
      for (const { ports, startupProbe, readinessProbe, livenessProbe } of containers) {
        for (const probe of [startupProbe, readinessProbe, livenessProbe])
          expect(ports.map(({ name }) => name)).toContain(probe?.httpGet?.port ?? probe?.tcpSocket?.port);
        if (componentOf(workload) === 'redis') continue;
        expect(readinessProbe?.httpGet).toEqual({ path: '/ready', port: 'metrics' });
        expect(livenessProbe?.httpGet).toEqual({ path: '/live', port: 'metrics' });
      }
    });
  });

  it("a worker's startup probe waits for its model for at least five minutes", async () => {
    await each(({ containers: [container] }, workload) => {
      if (componentOf(workload) !== 'worker') return;
      const { httpGet, periodSeconds = 10, failureThreshold = 3 } = container?.startupProbe ?? {};
      expect(httpGet).toEqual({ path: '/ready', port: 'metrics' });
      expect(periodSeconds * failureThreshold).toBeGreaterThanOrEqual(300);
    });
  });

  it("have a grace period longer than an orderly stop, plus the API's preStop sleep for proxies", async () => {
    await each(({ containers, terminationGracePeriodSeconds }, workload) => {
      const preStopS = Math.max(...containers.map(({ lifecycle }) => lifecycle?.preStop?.sleep?.seconds ?? 0));
      expect(terminationGracePeriodSeconds).toBeGreaterThanOrEqual(preStopS + maxStopMs / 1000 + 5);
      expect(maxStopMs).toBeGreaterThan(drainMs);
      expect(preStopS).toBe(componentOf(workload) === 'api' ? 10 : 0);
    });
  });

  it('spread over nodes and zones', async () => {
    await each(({ topologySpreadConstraints = [] }, workload) => {
      if (componentOf(workload) === 'redis') return;
      expect(topologySpreadConstraints.map(({ topologyKey }) => topologyKey)).toEqual([
        'kubernetes.io/hostname',
        'topology.kubernetes.io/zone',
      ]);
      for (const { labelSelector } of topologySpreadConstraints) expect(labelSelector).toEqual(workload.spec.selector);
    });
  });

  it('GPU workers have one GPU each, and rollouts need no spare GPU', async () => {
    await each(({ containers: [container] }, { spec }) => {
      const gpus = container?.resources?.limits?.['nvidia.com/gpu'];
      const device = container?.env?.find(({ name }) => name === 'DEVICE')?.value;
      const isForGpus = container?.image.includes('-cuda') === true;
      expect([gpus, device]).toEqual(isForGpus ? [1, 'cuda'] : [undefined, undefined]);
      expect(spec.strategy?.rollingUpdate?.maxSurge === 0).toBe(isForGpus);
    });
  });
});

const units: Readonly<Record<string, number>> = { m: 0.001, Mi: 2 ** 20, Gi: 2 ** 30 };

/** Parses a Kubernetes quantity: `250m`, `1Gi`, 2. */
function amount(quantity: string | number | undefined): number {
  const { number, unit } = /^(?<number>[\d.]+)(?<unit>m|Mi|Gi)?$/.exec(String(quantity))?.groups ?? {};
  return Number(number) * (unit === undefined ? 1 : (units[unit] ?? Number.NaN));
}

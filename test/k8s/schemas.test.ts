/** The manifests against the schemas that Kubernetes, KEDA and the Gateway API publish. */
import { describe, expect, inject, it } from 'vitest';
import { kubernetesVersions } from './kubernetes-tools.ts';
import { buildText, findFaults, overlays, parseManifests, whyNot } from './manifests.ts';

const reason = whyNot();
const newest = kubernetesVersions.at(-1)!;

it.runIf(process.env['CI'])('in CI, the tools can be installed wherever go and python3 are', () => {
  const tools = inject('kubernetesTools');
  expect(tools.status === 'failed' ? tools.reason : undefined).toBeUndefined();
});

describe.skipIf(reason !== undefined)(`manifests and their schemas${reason === undefined ? '' : `: ${reason}`}`, () => {
  it.each(overlays)('%s is built and valid', async (overlay) => {
    const text = await buildText(overlay);
    expect(parseManifests(text).length).toBeGreaterThan(15);
    expect(await findFaults(text)).toEqual([]);
  });

  describe('the validator refuses', () => {
    it('a field that there is not, in a pod', async () => {
      expect(await broken('startupProbe:', 'startUpProbe:')).toContain(
        "additional properties 'startUpProbe' not allowed",
      );
    });

    it('a value of the wrong type', async () => {
      expect(await broken('periodSeconds: 10', 'periodSeconds: ten')).toContain('want null or integer');
    });

    it('a field that KEDA does not have', async () => {
      expect(await broken('cooldownPeriod:', 'coolDownPeriod:')).toContain(
        "additional properties 'coolDownPeriod' not allowed",
      );
    });

    it('a value that KEDA does not take', async () => {
      expect(await broken('behavior: currentReplicasIfHigher', 'behavior: highest')).toContain(
        '/spec/fallback/behavior',
      );
    });

    it('a kind that nobody knows', async () => {
      expect(await broken('kind: ScaledObject', 'kind: ScaleObject')).toContain(
        'could not find schema for ScaleObject',
      );
    });
  });
});

/** What the validator has against the overlay once a piece of it is another. */
async function broken(piece: string, by: string): Promise<string> {
  const text = await buildText('k8s/overlays/cpu');
  expect(text).toContain(piece);
  return (await findFaults(text.replace(piece, by), [newest])).join('\n');
}

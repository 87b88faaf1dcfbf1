/** The manifests against the published schemas of Kubernetes, KEDA and the Gateway API. */
import { describe, expect, inject, it } from 'vitest';
import { kubernetesVersions } from './kubernetes-tools.ts';
import { buildText, findSchemaErrors, overlays, parseManifests, skipReason } from './manifests.ts';

const reason = skipReason();
const newest = kubernetesVersions.at(-1)!;

it.runIf(process.env['CI'])('in CI, the tools can be installed if go and python3 are there', () => {
  const tools = inject('kubernetesTools');
  expect(tools.status === 'failed' ? tools.reason : undefined).toBeUndefined();
});

describe.skipIf(reason !== undefined)(`manifests and their schemas${reason === undefined ? '' : `: ${reason}`}`, () => {
  it.each(overlays)('%s builds and is valid', async (overlay) => {
    const text = await buildText(overlay);
    expect(parseManifests(text).length).toBeGreaterThan(15);
    expect(await findSchemaErrors(text)).toEqual([]);
  });

  describe('the validator reports', () => {
    it('an unknown field in a pod', async () => {
      expect(await errorsAfterReplacing('startupProbe:', 'startUpProbe:')).toContain(
        "additional properties 'startUpProbe' not allowed",
      );
    });

    it('a value of the wrong type', async () => {
      expect(await errorsAfterReplacing('periodSeconds: 10', 'periodSeconds: ten')).toContain('want null or integer');
    });

    it('a field that KEDA does not have', async () => {
      expect(await errorsAfterReplacing('cooldownPeriod:', 'coolDownPeriod:')).toContain(
        "additional properties 'coolDownPeriod' not allowed",
      );
    });

    it('a value that KEDA does not allow', async () => {
      expect(await errorsAfterReplacing('behavior: currentReplicasIfHigher', 'behavior: highest')).toContain(
        '/spec/fallback/behavior',
      );
    });

    it('an unknown kind', async () => {
      expect(await errorsAfterReplacing('kind: ScaledObject', 'kind: ScaleObject')).toContain(
        'could not find schema for ScaleObject',
      );
    });
  });
});

/** Returns the errors of the overlay after replacing a part of its text. */
async function errorsAfterReplacing(part: string, replacement: string): Promise<string> {
  const text = await buildText('k8s/overlays/cpu');
  expect(text).toContain(part);
  return (await findSchemaErrors(text.replace(part, replacement), [newest])).join('\n');
}

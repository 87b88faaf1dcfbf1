/**
 * Allowed connections, evaluated by the rules of Kubernetes: a connection is allowed if any policy of the pod allows
 * it.
 */
import { BlockList, isIPv6 } from 'node:net';
import { isPublicAddress } from '@darkroom/core';
import ipaddr from 'ipaddr.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { build, type Manifest, type Selector, skipReason, workloadsOf } from './manifests.ts';

const reason = skipReason();
const apps = ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'];

interface Peer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}

interface Rule {
  from?: Peer[];
  to?: Peer[];
  ports?: { port: number | string; protocol?: string }[];
}

interface Policy {
  podSelector: Selector;
  policyTypes: ('Ingress' | 'Egress')[];
  ingress?: Rule[];
  egress?: Rule[];
}

describe.skipIf(reason !== undefined)('network policies', () => {
  let manifests: Manifest[];
  let policies: { name: string; policy: Policy }[];
  beforeAll(async () => {
    manifests = await build('k8s/overlays/cpu');
    policies = policiesOf(manifests);
  });

  it('deny all traffic of the namespace that no other policy allows', () => {
    expect(policies.find(({ name }) => name === 'deny-all')?.policy).toEqual({
      podSelector: {},
      policyTypes: ['Ingress', 'Egress'],
    });
  });

  it('allow egress to DNS and Redis for every app, and to the internet for the API and the webhook-sender only', () => {
    const out = Object.fromEntries(apps.map((app) => [app, namesFor(policies, app, 'Egress')]));
    const base = ['to-dns', 'to-redis'];
    expect(out).toEqual({
      api: ['to-dns', 'to-internet', 'to-redis'],
      'batch-former': base,
      janitor: base,
      'webhook-sender': ['to-dns', 'to-internet', 'to-redis'],
      worker: base,
    });
  });

  it('allow ingress to the API from anywhere, and to metrics from their readers', () => {
    const into = Object.fromEntries(apps.map((app) => [app, namesFor(policies, app, 'Ingress')]));
    expect(into).toEqual({
      api: ['clients-to-api', 'readers-to-metrics'],
      'batch-former': ['readers-to-metrics'],
      janitor: ['readers-to-metrics'],
      'webhook-sender': ['readers-to-metrics'],
      worker: ['readers-to-metrics'],
    });
  });

  it('name ports that the pods have; only DNS and Redis ports are numbers', () => {
    for (const { policy } of policies) {
      const wanted = (policy.ingress ?? []).flatMap(({ ports = [] }) => ports.map(({ port }) => port));
      const pods = workloadsOf(manifests).map(({ spec }) => spec.template);
      for (const { spec } of pods.filter(({ metadata }) => takes(policy, metadata.labels)))
        expect(spec.containers.flatMap(({ ports }) => ports.map(({ name }) => name))).toEqual(
          expect.arrayContaining(wanted),
        );
    }
    const rules = policies.flatMap(({ policy }) => policy.egress ?? []);
    expect(rules.map(({ ports = [] }) => ports.map(({ port }) => port))).toEqual(
      expect.arrayContaining([[53, 53], [6379, 6380, 26_379], []]),
    );
    expect(rules).toHaveLength(3);
  });

  it('with a Redis in the cluster, allow egress to it and ingress from the apps only', async () => {
    const withRedis = policiesOf(await build('test/k8s/with-redis'));
    const redis = { matchLabels: { 'app.kubernetes.io/name': 'darkroom', 'app.kubernetes.io/component': 'redis' } };
    expect(withRedis.find(({ name }) => name === 'to-redis')?.policy.egress).toEqual([
      { to: [{ podSelector: redis }], ports: [{ port: 'redis' }] },
    ]);
    expect(namesFor(withRedis, 'redis', 'Egress')).toEqual(['to-dns']);
    expect(withRedis.find(({ name }) => name === 'apps-to-redis')?.policy).toEqual({
      podSelector: redis,
      policyTypes: ['Ingress'],
      ingress: [
        {
          from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': 'darkroom' } } }],
          ports: [{ port: 'redis' }],
        },
      ],
    });
  });

  it('to-internet allows exactly the addresses that isPublicAddress allows', () => {
    const blocks = policies
      .find(({ name }) => name === 'to-internet')!
      .policy.egress!.flatMap(({ to = [] }) => to.map(({ ipBlock }) => ipBlock!));
    const isAllowed = reader(blocks);
    const cidrs = [...blocks.flatMap(({ cidr, except = [] }) => [cidr, ...except]), ...specialRanges()];
    const addresses = cidrs.flatMap(edgesOf).filter((address) => !isMapped(address));
    expect(addresses.length).toBeGreaterThan(150);
    const differing = addresses.filter((address) => isAllowed(address) !== isPublicAddress(address));
    expect(differing).toEqual([]);
    expect(['1.1.1.1', '2606:4700::1111', '10.0.0.1', '169.254.169.254', 'fd00::1'].map(isAllowed)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

function policiesOf(manifests: readonly Manifest[]): { name: string; policy: Policy }[] {
  return manifests
    .filter(({ kind }) => kind === 'NetworkPolicy')
    .map(({ metadata, spec }) => ({ name: metadata.name, policy: spec as Policy }));
}

/** Returns the policies that allow a component traffic in a direction. */
function namesFor(policies: readonly { name: string; policy: Policy }[], component: string, way: 'Ingress' | 'Egress') {
  const labels = { 'app.kubernetes.io/name': 'darkroom', 'app.kubernetes.io/component': component };
  return policies
    .filter(({ policy }) => policy.policyTypes.includes(way) && takes(policy, labels))
    .filter(({ policy }) => (way === 'Ingress' ? policy.ingress : policy.egress) !== undefined)
    .map(({ name }) => name)
    .toSorted();
}

function takes(
  { podSelector: { matchLabels = {}, matchExpressions = [] } }: Policy,
  labels: Record<string, string>,
): boolean {
  const hasLabels = Object.entries(matchLabels).every(([label, value]) => labels[label] === value);
  return hasLabels && matchExpressions.every(({ key, values = [] }) => values.includes(labels[key] ?? ''));
}

function reader(blocks: readonly { cidr: string; except?: string[] }[]): (address: string) => boolean {
  const lists = blocks.map(({ cidr, except = [] }) => ({ allowed: listOf([cidr]), denied: listOf(except) }));
  return (address) => {
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    return lists.some(({ allowed, denied }) => allowed.check(address, family) && !denied.check(address, family));
  };
}

function listOf(cidrs: readonly string[]): BlockList {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', prefix] = cidr.split('/');
    list.addSubnet(address, Number(prefix), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** Returns all ranges that the library behind `isPublicAddress` knows as special. */
function specialRanges(): string[] {
  type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];
  type Special = { SpecialRanges: Record<string, Range | Range[]> };
  return [ipaddr.IPv4.prototype, ipaddr.IPv6.prototype].flatMap((prototype) =>
    Object.values((prototype as unknown as Special).SpecialRanges)
      .flatMap((ranges) => (Array.isArray(ranges[0]) ? (ranges as Range[]) : [ranges as Range]))
      .map(([address, prefix]) => `${address.toString()}/${prefix}`),
  );
}

/** Returns the first and last address of a range and their neighbours outside of it. */
function edgesOf(cidr: string): string[] {
  const [address, prefix] = ipaddr.parseCIDR(cidr);
  const bytes = address.toByteArray();
  const bits = BigInt(bytes.length * 8);
  const start = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  const end = start + (1n << (bits - BigInt(prefix))) - 1n;
  return [start - 1n, start, end, end + 1n]
    .filter((value) => value >= 0n && value < 1n << bits)
    .map((value) =>
      ipaddr
        .fromByteArray(bytes.map((_byte, index) => Number((value >> (bits - 8n * BigInt(index + 1))) & 255n)))
        .toString(),
    );
}

/** IPv4-mapped IPv6 addresses: both sides treat them as IPv4, and no packet carries them. */
function isMapped(address: string): boolean {
  return ipaddr.parse(address) instanceof ipaddr.IPv6 && (ipaddr.parse(address) as ipaddr.IPv6).isIPv4MappedAddress();
}

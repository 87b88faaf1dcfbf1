import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { hasExactProducts } from './exact-products.ts';

it.runIf(process.platform === 'linux' && process.arch === 'x64')(
  'detects exact products of uint8 and int8 on CPUs with VNNI',
  async () => {
    const { flags } = /^flags\s*:(?<flags>.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))!.groups!;
    expect(await hasExactProducts()).toBe(/avx(?:512)?_vnni/.test(flags!));
  },
);

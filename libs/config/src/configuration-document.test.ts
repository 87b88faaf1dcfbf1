import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { configurationDocument } from './configuration-document.ts';
import type { Setting } from './setting.ts';
import { settings } from './settings.ts';

const file = join(import.meta.dirname, '../../../docs/configuration.md');

it('docs/configuration.md is what the table of settings says', () => {
  expect(
    readFileSync(file, 'utf8'),
    'run `npm run build && node tools/write-configuration-doc.mjs` to write it anew',
  ).toBe(configurationDocument());
});

const withDefault = Object.entries<Setting>(settings).filter(([, setting]) => setting.default !== undefined);

it.each(withDefault)('%s has a default that it would accept itself', (_, { kind, default: standard }) => {
  expect(kind.parse(standard!)).toBeDefined();
});

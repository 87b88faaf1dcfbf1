import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { configurationDocument } from './show-settings.ts';
import type { Setting } from './setting.ts';
import { settings } from './settings.ts';

const file = join(import.meta.dirname, '../../../docs/configuration.md');

it('docs/configuration.md matches the table of settings', () => {
  expect(readFileSync(file, 'utf8'), 'run `npm run build && node tools/write-configuration-doc.mjs` to update it').toBe(
    configurationDocument(),
  );
});

const withDefault = Object.entries<Setting>(settings).filter(([, setting]) => setting.default !== undefined);

it.each(withDefault)('%s has a valid default', (_, { kind, default: standard }) => {
  expect(kind.parse(standard!)).toBeDefined();
});

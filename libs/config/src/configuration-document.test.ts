import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { configurationDocument } from './configuration-document.ts';
import { settings } from './settings.ts';

const file = join(import.meta.dirname, '../../../docs/configuration.md');

it('docs/configuration.md is what the table of settings says', () => {
  expect(
    readFileSync(file, 'utf8'),
    'run `npm run build && node tools/write-configuration-doc.mjs` to write it anew',
  ).toBe(configurationDocument());
});

it.each(Object.entries(settings))(
  '%s has a default that it would accept itself, or says what happens',
  (_, setting) => {
    const isSound =
      typeof setting.default === 'string'
        ? setting.kind.schema.safeParse(setting.default).success
        : Boolean(setting.defaultDoc);
    expect(isSound).toBe(true);
  },
);

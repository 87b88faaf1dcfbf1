import { readFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { expect, it } from 'vitest';
import { pythonTypes, type Schema } from '../testing/python-types.ts';
import { openTestApi } from '../testing/test-api.ts';

const client = '../../../../libs/client/src';
const pythonClient = '../../../../clients/python/src/darkroom_client';
const header = '// Generated from /openapi.json by `npm run generate`. Do not edit.\n/* oxlint-disable max-lines */\n';
/** Schemas that both clients use; the schemas that they reference are included. */
const usedByBoth = [
  'ImageRequest',
  'TextRequest',
  'Accepted',
  'Cancel',
  'Request',
  'Model',
  'RequestEvent',
  'RequestPage',
];
/** Schemas that the TypeScript client uses. */
const used = [...usedByBoth, 'Pin', 'Status', 'DeadRequestList', 'FailedAttempt', 'KeyList', 'NewKey', 'AddedKey'];

type Document = { components: { schemas: Record<string, Schema> } };

/** Returns the schemas with these names and all that they reference. */
function schemasOf({ components }: Document, names: readonly string[]): Record<string, Schema> {
  const found = new Set(names);
  for (const name of found)
    for (const [, reference] of JSON.stringify(components.schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g))
      found.add(reference!);
  return Object.fromEntries([...found].map((name) => [name, components.schemas[name]!]));
}

/** Tags that repeat the type, and the example of each time. */
const repeating = /^(?:@enum .*|@description discriminator enum property .*|@example \d{4}-\d\d-\d\dT\S*)$/;

/** Shortens comments to what the types do not say, and breaks their lines at 120 columns. */
function tidyComments(code: string): string {
  return code.replaceAll(/^( *)\/\*\*(.*?)\*\/\n/gms, (_, indent: string, body: string) => {
    const lines = body.split('\n').map((line) => line.replace(/^ *(?:\* ?)?(?:@description )?/, '').trimEnd());
    const width = 120 - indent.length - ' * '.length;
    const broken = lines
      .filter((line) => line !== '' && !repeating.test(line))
      .flatMap((line) => line.match(new RegExp(`.{1,${width}}(?= |$)`, 'g')) ?? [])
      // Only the lines of an example are indented.
      .map((line) => (/^ \S/.test(line) ? line.slice(1) : line));
    if (broken.length === 0) return '';
    const [only, ...others] = broken;
    if (others.length === 0 && `${only} */`.length < width) return `${indent}/** ${only} */\n`;
    return [`${indent}/**`, ...broken.map((line) => `${indent} * ${line.trimEnd()}`), `${indent} */\n`].join('\n');
  });
}

it('the types of the client are those of the OpenAPI document; `npm run generate` updates them', async () => {
  const { api } = await openTestApi();
  const document = (await (await api.request('/openapi.json')).json()) as Document;
  const schemas = schemasOf(document, used);
  const types = await openapiTS(JSON.stringify({ ...document, paths: {}, components: { schemas } }), {
    rootTypes: true,
    rootTypesNoSchemaPrefix: true,
    rootTypesKeepCasing: true,
  });
  await expect(`${header}${tidyComments(astToString(types))}`).toMatchFileSnapshot(`${client}/api-types.ts`);
});

it('the types of the Python client are those of the OpenAPI document; `npm run generate` updates them', async () => {
  const { api } = await openTestApi();
  const document = (await (await api.request('/openapi.json')).json()) as Document;
  await expect(pythonTypes(schemasOf(document, usedByBoth))).toMatchFileSnapshot(`${pythonClient}/api_types.py`);
});

it('the client, which has no dependency on other packages, contains a copy of the text log of libs/core', async () => {
  const source = new URL('../../../../libs/core/src/request/output-text.ts', import.meta.url);
  const copy = `// Generated from libs/core by \`npm run generate\`. Do not edit.\n${await readFile(source, 'utf8')}`;
  await expect(copy).toMatchFileSnapshot(`${client}/output-text.ts`);
});

import { readFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import { expect, it } from 'vitest';
import { openTestApi } from '../testing/test-api.ts';

const client = '../../../../libs/client/src';
const header = '// Generated from /openapi.json by `npm run generate`. Do not edit.\n/* oxlint-disable max-lines */\n';
/** Schemas that the client uses; the schemas that they reference are included. */
const used = [
  'ImageRequest',
  'TextRequest',
  'Accepted',
  'Cancel',
  'Request',
  'Model',
  'RequestEvent',
  'Status',
  'DeadRequestList',
];

type Document = { components: { schemas: Record<string, object> } };

/** Returns the schemas with these names and all that they reference. */
function schemasOf({ components }: Document, names: readonly string[]): Record<string, object> {
  const found = new Set(names);
  for (const name of found)
    for (const [, reference] of JSON.stringify(components.schemas[name]).matchAll(/"#\/components\/schemas\/(\w+)"/g))
      found.add(reference!);
  return Object.fromEntries([...found].map((name) => [name, components.schemas[name]!]));
}

/** Breaks lines of comments at 120 columns, as in all our files. */
function wrapComments(code: string): string {
  return code.replaceAll(/^( *)(\/\*\*|\*) (.*?)( \*\/)?$/gm, (line, indent: string, start: string, text: string) => {
    if (line.length <= 120) return line;
    const [margin, isWhole] = start === '*' ? [indent, false] : [`${indent} `, true];
    const width = 120 - margin.length - 2;
    const lines = text.match(new RegExp(`.{1,${width}}(?= |$)`, 'g'))!.map((each) => `${margin}* ${each.trim()}`);
    return isWhole ? [`${indent}/**`, ...lines, `${margin}*/`].join('\n') : lines.join('\n');
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
  await expect(`${header}${wrapComments(astToString(types))}`).toMatchFileSnapshot(`${client}/api-types.ts`);
});

it('the client, which has no dependency on other packages, contains a copy of the text log of libs/core', async () => {
  const source = new URL('../../../../libs/core/src/request/output-text.ts', import.meta.url);
  const copy = `// Generated from libs/core by \`npm run generate\`. Do not edit.\n${await readFile(source, 'utf8')}`;
  await expect(copy).toMatchFileSnapshot(`${client}/output-text.ts`);
});

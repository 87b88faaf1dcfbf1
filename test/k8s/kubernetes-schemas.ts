/** Converts published schemas to the form and file names that kubeconform expects. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

/** Converts the schemas of the package kubernetes-validate, whose ids and references point to missing addresses. */
export async function writeKubernetesSchemas({ from, to }: { from: string; to: string }): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of await readdir(from)) {
    const text = await readFile(join(from, name), 'utf8');
    const { $id: _id, ...schema } = JSON.parse(text.replaceAll('"/api/_definitions.json#', '"_definitions.json#')) as {
      $id?: string;
    };
    await writeFile(join(to, name), JSON.stringify(schema));
  }
}

interface CustomResourceDefinition {
  spec: {
    group: string;
    names: { kind: string };
    versions: { name: string; schema: { openAPIV3Schema: OpenApiSchema } }[];
  };
}

interface OpenApiSchema {
  type?: string;
  properties?: Record<string, OpenApiSchema>;
  items?: OpenApiSchema;
  additionalProperties?: boolean | OpenApiSchema;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

/** Converts CustomResourceDefinitions to schemas in which unknown fields are errors. */
export async function writeCustomSchemas({ from, to }: { from: readonly string[]; to: string }): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const file of from) {
    const { spec } = parse(await readFile(file, 'utf8')) as CustomResourceDefinition;
    const [group] = spec.group.split('.');
    for (const { name, schema } of spec.versions) {
      const path = join(to, `${spec.names.kind.toLowerCase()}-${group}-${name}.json`);
      await writeFile(path, JSON.stringify(toStrict(schema.openAPIV3Schema)));
    }
  }
}

function toStrict(schema: OpenApiSchema): OpenApiSchema {
  const { type, properties, items, additionalProperties, ...rest } = schema;
  if (schema['x-kubernetes-int-or-string'] === true)
    return { ...rest, anyOf: [{ type: 'integer' }, { type: 'string' }] } as OpenApiSchema;
  const strict: OpenApiSchema = { ...rest, ...(type === undefined ? {} : { type }) };
  if (items !== undefined) strict.items = toStrict(items);
  if (typeof additionalProperties === 'object') strict.additionalProperties = toStrict(additionalProperties);
  else if (additionalProperties !== undefined) strict.additionalProperties = additionalProperties;
  if (properties === undefined) return strict;
  strict.properties = Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, toStrict(field)]));
  if (schema['x-kubernetes-preserve-unknown-fields'] !== true) strict.additionalProperties ??= false;
  return strict;
}

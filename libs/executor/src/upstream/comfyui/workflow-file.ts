/** Reads the file of UPSTREAM_WORKFLOW: a workflow of ComfyUI, and the fields of its nodes that a request sets. */
import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { DarkroomError } from '@darkroom/core';
import { z } from 'zod';

/** A node of a workflow in API format. An input is a value, or `[node id, output number]`. */
const node = z.looseObject({ class_type: z.string(), inputs: z.record(z.string(), z.unknown()) });
const graphSchema = z.record(z.string(), node);

/** A workflow in API format: nodes by their ids. */
export type ComfyGraph = z.infer<typeof graphSchema>;

/** A field of a node: `6.text` is the input `text` of node 6. */
const place = z.string().regex(/^[^.]+\../, { error: 'a node and its input, such as "6.text"' });
/** One field, or several that get the same value. */
const places = z.union([place, z.array(place).min(1)]).transform((each) => (typeof each === 'string' ? [each] : each));

const optional = [
  'negative_prompt',
  'seed',
  'num_inference_steps',
  'guidance_scale',
  'strength',
  'width',
  'height',
  'image',
  'mask',
] as const;
const fields = z.strictObject({
  prompt: places,
  ...(Object.fromEntries(optional.map((name) => [name, places.optional()])) as Record<
    (typeof optional)[number],
    z.ZodOptional<typeof places>
  >),
});

const maxSide = 4096;
const side = z.int().min(1).max(maxSide);
const mappingSchema = z.strictObject({
  workflow: z.string().min(1),
  fields,
  output: z.string().optional(),
  sizes: z.strictObject({ multiple: side, min: side, max: side }).default({ multiple: 8, min: 64, max: 2048 }),
  steps: z.strictObject({ min: z.int().min(1), max: z.int().max(1000) }).optional(),
  guidance: z.strictObject({ min: z.number().min(0), max: z.number().max(1000) }).optional(),
});

export type WorkflowField = keyof z.infer<typeof fields>;

/** The file's content, checked. */
export interface WorkflowFile extends Omit<z.infer<typeof mappingSchema>, 'workflow'> {
  /** Name for errors. */
  readonly name: string;
  readonly graph: ComfyGraph;
}

/** @throws DarkroomError `model_unsupported` naming the file, the field, its value and what was expected. */
export function readWorkflowFile(path: string): WorkflowFile {
  const { workflow, ...mapping } = parse(path, mappingSchema, 'a mapping of a workflow');
  const graphPath = resolve(dirname(path), workflow);
  const graph = parse(graphPath, graphSchema, "a workflow in ComfyUI's API format (Workflow > Export (API))");
  const file = { ...mapping, graph, name: basename(path) };
  for (const [field, places] of Object.entries(mapping.fields)) {
    for (const place of places ?? []) checkPlace(file, field, place);
  }
  if (mapping.output !== undefined && graph[mapping.output] === undefined)
    throw wrongFile(file.name, 'output', mapping.output, `a node of the workflow: ${Object.keys(graph).join(', ')}`);
  if (mapping.fields.mask !== undefined && mapping.fields.image === undefined)
    throw wrongFile(file.name, 'fields.mask', mapping.fields.mask, 'fields.image too');
  return file;
}

export function wrongFile(file: string, field: string, value: unknown, expected: string): DarkroomError {
  return new DarkroomError(
    'model_unsupported',
    'executor.comfyui',
    `${file}: ${field} is ${JSON.stringify(value)}, expected ${expected}`,
  );
}

export function splitPlace(place: string): [node: string, input: string] {
  const dot = place.indexOf('.');
  return [place.slice(0, dot), place.slice(dot + 1)];
}

function checkPlace({ name, graph }: WorkflowFile, field: string, place: string): void {
  const [id, input] = splitPlace(place);
  const target = graph[id];
  if (target === undefined)
    throw wrongFile(name, `fields.${field}`, place, `a node of the workflow: ${Object.keys(graph).join(', ')}`);
  if (!Object.hasOwn(target.inputs, input))
    throw wrongFile(name, `fields.${field}`, place, `an input of node ${id}: ${Object.keys(target.inputs).join(', ')}`);
}

function parse<Schema extends z.ZodType>(path: string, schema: Schema, expected: string): z.infer<Schema> {
  const fail = (reason: string, cause?: unknown) =>
    new DarkroomError('model_unsupported', 'executor.comfyui', `${path} ${reason}, expected ${expected}`, cause);
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw fail(error instanceof SyntaxError ? 'is not JSON' : 'cannot be read', error);
  }
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const [problem] = result.error.issues;
  throw fail(`is not valid: ${problem?.path.join('.') ?? ''}: ${problem?.message ?? ''}`);
}

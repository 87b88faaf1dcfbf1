/** The file of UPSTREAM_WORKFLOW: each mistake is named with its file, field, value and what was expected. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createComfyui } from './comfyui.ts';

const workflows = join(import.meta.dirname, '../../testing/workflows');
const graph = JSON.parse(readFileSync(join(workflows, 'text-to-image.api.json'), 'utf8')) as object;
const mapping = JSON.parse(readFileSync(join(workflows, 'text-to-image.json'), 'utf8')) as { fields: object };

/** Returns the error of a mapping with these changes; undefined if it is valid. */
function errorOf({ fields = {}, api = graph as unknown, ...changes }: Record<string, unknown> = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-workflow-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(join(directory, 'text-to-image.api.json'), typeof api === 'string' ? api : JSON.stringify(api));
  const path = join(directory, 'toy.json');
  writeFileSync(path, JSON.stringify({ ...mapping, ...changes, fields: { ...mapping.fields, ...(fields as object) } }));
  try {
    createComfyui({ workflow: path });
    return undefined;
  } catch (error) {
    return (error as Error).message.replaceAll(`${directory}/`, '');
  }
}

it('accepts a mapping, also of one field to several inputs', () => {
  expect(errorOf()).toBeUndefined();
  expect(errorOf({ fields: { seed: ['3.seed', '3.steps'] } })).toBeUndefined();
});

const apiFormat = "a workflow in ComfyUI's API format (Workflow > Export (API))";

it.each([
  [{ fields: { prompt: '66.text' } }, 'toy.json: fields.prompt is "66.text", expected a node of the workflow: 3, 4, '],
  [{ fields: { prompt: '6.txt' } }, 'toy.json: fields.prompt is "6.txt", expected an input of node 6: text, clip'],
  [{ fields: { prompt: 'text' } }, 'fields.prompt: a node and its input, such as "6.text"'],
  [{ fields: { prompts: '6.text' } }, 'prompts'],
  [{ fields: { mask: '6.text' } }, 'toy.json: fields.mask is ["6.text"], expected fields.image too'],
  [{ fields: { width: undefined } }, 'toy.json: fields.width is null, expected a node and its input'],
  [{ output: '99' }, 'toy.json: output is "99", expected a node of the workflow: 3, 4, '],
  [
    { sizes: { multiple: 8, min: 600, max: 800 } },
    'the value of 5.width (fields.width) is 512, expected a multiple of 8',
  ],
  [{ steps: { min: 1, max: 10 } }, 'the value of 3.steps (fields.num_inference_steps) is 20, expected 1 to 10'],
  [{ api: { nodes: [], links: [] } }, `text-to-image.api.json is not valid: `],
  [{ api: { nodes: [], links: [] } }, `expected ${apiFormat}`],
  [{ api: 'hello' }, `text-to-image.api.json is not JSON, expected ${apiFormat}`],
  [{ workflow: 'other.json' }, `other.json cannot be read, expected ${apiFormat}`],
])('names what is wrong with %j', (changes, message) => {
  expect(errorOf(changes)).toContain(message);
});

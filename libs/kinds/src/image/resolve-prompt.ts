/** Validates prompts in the syntax of Stable Diffusion web UI. */
import { type FieldProblem, invalidValue } from '@darkroom/core';
import type { ImageCard } from './image-input.ts';
import { type ImageBody, maxLoras, maxLoraScale } from './image-request-schema.ts';
import { maxPromptWeight, parsePromptWeights, takeLoraTags } from './webui-prompt.ts';

/** Returns the request with the adapters that its prompt names in `loras`, after those of the field. */
export function withLoraTags(request: ImageBody): ImageBody {
  if (request.prompt_syntax !== 'webui') return request;
  const { prompt, tags } = takeLoraTags(request.prompt);
  if (tags.length === 0) return request;
  return { ...request, prompt, loras: [...(request.loras ?? []), ...tags.map(({ id, scale }) => ({ id, scale }))] };
}

/** Returns problems with a syntax that the model does not support, with weights, and with adapters in prompts. */
export function promptProblems(request: ImageBody, { id, promptSyntaxes = ['plain'] }: ImageCard): FieldProblem[] {
  const { prompt_syntax: syntax = 'plain' } = request;
  if (!promptSyntaxes.includes(syntax))
    return [
      invalidValue('prompt_syntax', syntax, `${promptSyntaxes.join(' or ')}: ${id} reads prompts in no other way`),
    ];
  if (syntax === 'plain') return [];
  // Without its tags, a prompt may have other weights.
  return [
    ...tagProblems(request),
    ...weightProblems('prompt', takeLoraTags(request.prompt).prompt),
    ...weightProblems('negative_prompt', request.negative_prompt ?? ''),
  ];
}

function tagProblems(request: ImageBody): FieldProblem[] {
  const { prompt, tags } = takeLoraTags(request.prompt);
  const wrong = tags.find(({ scale }) => !(Math.abs(scale) <= maxLoraScale));
  if (wrong !== undefined)
    return [invalidValue('prompt', wrong.tag, `<lora:id:scale> with a scale from -${maxLoraScale} to ${maxLoraScale}`)];
  const [nested] = takeLoraTags(prompt).tags;
  if (nested !== undefined) return [invalidValue('prompt', nested.tag, 'no <lora:id:scale> within another')];
  if (prompt === '') return [invalidValue('prompt', request.prompt, 'a text besides <lora:id:scale>')];
  if (tags.length + (request.loras?.length ?? 0) > maxLoras)
    return [invalidValue('prompt', tags.at(-1)!.tag, `at most ${maxLoras} loras, those of \`loras\` included`)];
  return [];
}

function weightProblems(field: string, prompt: string): FieldProblem[] {
  const wrong = parsePromptWeights(prompt).find(({ weight }) => !(Math.abs(weight) <= maxPromptWeight));
  if (wrong === undefined) return [];
  const expected = `weights from -${maxPromptWeight} to ${maxPromptWeight}`;
  return [invalidValue(field, `(${wrong.text}:${Number(wrong.weight.toPrecision(6))})`, expected)];
}

import { imageCard, requestPolicy as options } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import type { ImageCard } from './image-input.ts';
import { recipeOf } from './image-recipe.ts';
import { resolveImage } from './resolve-image.ts';

const card: ImageCard = {
  ...imageCard,
  promptSyntaxes: ['plain', 'webui'],
  loras: [
    { id: 'pixels', rank: 4 },
    { id: 'sunset', rank: 16 },
  ],
};
const resolve = (body: object, model = card) => resolveImage(body, model, options);

/** Returns the error messages of a body in the syntax. */
function messagesOf(body: object, model = card): string[] {
  const result = resolve({ prompt_syntax: 'webui', ...body }, model);
  return result.status === 'invalid' ? result.problems.map(({ message }) => message) : [];
}

describe('prompt_syntax', () => {
  it('is plain by default: brackets and <lora:…> are text', () => {
    const prompt = 'a (red:1.2) fox [logo] <lora:pixels:0.8>';
    const bodies = [{ prompt }, { prompt, prompt_syntax: 'plain' }].map((body) => resolve(body, imageCard));
    for (const body of bodies) {
      expect(body).toMatchObject({ request: { input: { prompt } } });
      expect(body).not.toHaveProperty('request.input.promptSyntax');
      expect(body).not.toHaveProperty('request.input.loras');
    }
  });

  it('webui moves the adapters of the prompt to the loras of the request, after those of the field', () => {
    const body = { prompt: 'a (red:1.2) fox <lora:pixels:0.8>', loras: [{ id: 'sunset' }], prompt_syntax: 'webui' };
    const result = resolve(body);
    const loras = [
      { id: 'sunset', scale: 1 },
      { id: 'pixels', scale: 0.8 },
    ];
    const input = { prompt: 'a (red:1.2) fox', promptSyntax: 'webui', loras };
    expect(result).toMatchObject({ request: { input } });
    // The metadata of the file is a body with the same input.
    const { request } = result as Extract<typeof result, { status: 'resolved' }>;
    expect(resolve(recipeOf('tiny', request.input, 1))).toMatchObject({ request: { input } });
  });

  it.each([
    [{ prompt: 'a <lora:neon:1> fox' }, 'prompt is "neon", expected one of pixels, sunset'],
    [{ prompt: 'a <lora:pixels> fox <lora:pixels>' }, 'prompt is "pixels", expected each lora once'],
    [
      { prompt: 'a <lora:pixels> fox', loras: [{ id: 'neon' }] },
      'loras.0.id is "neon", expected one of pixels, sunset',
    ],
    [
      { prompt: 'a <lora:pixels:0.5:1> fox' },
      'prompt is "<lora:pixels:0.5:1>", expected <lora:id:scale> with a scale from -4 to 4',
    ],
    [{ prompt: '(a:<lora:pixels>99)' }, 'prompt is "(a:99)", expected weights from -10 to 10'],
    [
      { prompt: 'a <lo<lora:pixels>ra:sunset:1> fox' },
      'prompt is "<lora:sunset:1>", expected no <lora:id:scale> within another',
    ],
    [
      { prompt: 'a <lora:pixels:40> fox' },
      'prompt is "<lora:pixels:40>", expected <lora:id:scale> with a scale from -4 to 4',
    ],
    [{ prompt: '<lora:pixels>' }, 'prompt is "<lora:pixels>", expected a text besides <lora:id:scale>'],
    [{ prompt: 'at (10:30) a fox' }, 'prompt is "(10:30)", expected weights from -10 to 10'],
    [
      { prompt: 'a fox', negative_prompt: '(blur:-11)' },
      'negative_prompt is "(blur:-11)", expected weights from -10 to 10',
    ],
    [{ prompt: '('.repeat(30) + 'fox' }, 'prompt is "(fox:17.4494)", expected weights from -10 to 10'],
    [{ prompt: 'a fox', prompt_syntax: 'compel' }, 'prompt_syntax is "compel", expected plain or webui'],
  ])('rejects %j', (body, message) => expect(messagesOf(body)).toEqual([message]));

  it('rejects webui for a model that reads no weights, and names the model', () => {
    expect(messagesOf({ prompt: 'a (red) fox' }, imageCard)).toEqual([
      'prompt_syntax is "webui", expected plain: tiny reads prompts in no other way',
    ]);
  });
});

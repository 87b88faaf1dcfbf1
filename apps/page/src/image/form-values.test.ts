import { expect, it } from 'vitest';
import { type FormValues, requestOf, valuesOf } from './form-values.ts';

const full: FormValues = {
  prompt: ' a cat ',
  negative_prompt: 'a dog',
  model: 'tiny',
  width: '128',
  height: '96',
  num_inference_steps: '40',
  guidance_scale: '4.5',
  seed: '7',
  n: '2',
  scheduler: 'ddim',
  strength: '',
  upscale: '',
};
const blank = Object.fromEntries(Object.keys(full).map((name) => [name, ''])) as unknown as FormValues;
const draw = (): number => 99;

it('converts the form to a request, with about 16 previews', () => {
  const request = requestOf(full, draw);
  expect(request).toEqual({
    prompt: 'a cat',
    negative_prompt: 'a dog',
    model: 'tiny',
    size: '128x96',
    num_inference_steps: 40,
    guidance_scale: 4.5,
    seed: 7,
    n: 2,
    scheduler: 'ddim',
    preview: { every: 3 },
  });
  expect(valuesOf(request)).toEqual({ ...full, prompt: 'a cat' });
});

it('requests metadata in the file if the box is ticked', () => {
  const request = requestOf({ ...full, metadata: 'on' }, draw);
  expect(request.metadata).toBe(true);
  expect(valuesOf(request).metadata).toBe('on');
  expect(JSON.stringify(requestOf(full, draw))).not.toContain('metadata');
});

it('adds an input image unchanged, and the strength only with one', () => {
  const [image, mask] = [new Blob(['an image']), new Blob(['a mask'])];
  const request = requestOf({ ...full, strength: '0.6' }, draw, { image, mask });
  expect(request).toMatchObject({ strength: 0.6 });
  expect([request.image, request.mask]).toEqual([image, mask]);
  expect(valuesOf(request).strength).toBe('0.6');
  expect(requestOf({ ...full, strength: '' }, draw, { image }).strength).toBeUndefined();
  expect(requestOf({ ...full, strength: '0.6' }, draw).strength).toBeUndefined();
});

it('adds styles and upscaling', () => {
  const loras = [{ id: 'pixels', scale: 0.5 }];
  const request = requestOf({ ...full, upscale: '2' }, draw, { loras });
  expect(request).toMatchObject({ upscale: 2, loras });
  expect(valuesOf(request).upscale).toBe('2');
  expect(Object.keys(JSON.parse(JSON.stringify(requestOf(full, draw))) as object)).not.toContain('loras');
});

it('omits empty fields, except the seed, which is drawn here to be known for a repetition', () => {
  expect(requestOf({ ...blank, prompt: 'a cat' }, draw)).toEqual({ prompt: 'a cat', seed: 99, preview: { every: 1 } });
  expect(requestOf({ ...blank, seed: '0' }, draw).seed).toBe(0);
  // Values of a form whose lists are disabled because no model is known yet.
  const {
    model: _model,
    scheduler: _scheduler,
    strength: _strength,
    upscale: _upscale,
    ...known
  } = { ...blank, prompt: 'a cat' };
  expect(requestOf(known as FormValues, draw)).toEqual({ prompt: 'a cat', seed: 99, preview: { every: 1 } });
});

it('leaves validation to the API', () => {
  const odd = requestOf({ ...blank, width: '100', seed: 'seven', num_inference_steps: '-3' }, draw);
  expect(odd).toMatchObject({
    prompt: '',
    size: '100x',
    seed: 'seven',
    num_inference_steps: -3,
    preview: { every: 1 },
  });
});

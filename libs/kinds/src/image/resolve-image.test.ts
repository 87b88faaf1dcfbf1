import { imageCard, requestPolicy } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import type { ImageCard } from './image-input.ts';
import { resolveImage } from './resolve-image.ts';

const card: ImageCard = {
  ...imageCard,
  sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 96 } },
};
const styled: ImageCard = {
  ...card,
  loras: [
    { id: 'pixels', rank: 4 },
    { id: 'large', rank: 120 },
    { id: 'sunset', rank: 16 },
  ],
};
const other: ImageCard = { ...card, id: 'other', steps: { min: 1, max: 9, default: 4 } };
const options = requestPolicy;

function messagesOf(body: unknown, model = card): string[] {
  const result = resolveImage(body, model, options);
  return result.status === 'invalid' ? result.problems.map(({ message }) => message) : [result.status];
}

describe('defaults', () => {
  it('come from the model, the server and the schema', () => {
    expect(resolveImage({ prompt: 'a fox' }, card, options)).toEqual({
      status: 'resolved',
      request: {
        input: {
          prompt: 'a fox',
          negativePrompt: '',
          width: 128,
          height: 96,
          n: 1,
          numInferenceSteps: 12,
          guidanceScale: 3,
          guidanceRescale: 0,
          seed: 42,
          scheduler: 'ddim',
          outputFormat: 'png',
          outputCompression: 100,
          previewEvery: 5,
        },
        priority: 5,
        timeoutS: 600,
        startTimeoutS: 600,
      },
    });
  });

  it.each([
    [undefined, false],
    [true, true],
    [false, false],
  ])('embed metadata: request %s: %s', (metadata, isWanted) => {
    const body = { prompt: 'a fox', ...(metadata !== undefined && { metadata }) };
    const result = resolveImage(body, card, options);
    const input = result.status === 'resolved' ? result.request.input : undefined;
    // Absent rather than false, so that stored inputs without it stay unchanged.
    expect(Object.entries(input ?? {}).filter(([name]) => name === 'metadata')).toEqual(
      isWanted ? [['metadata', true]] : [],
    );
  });

  it('are overridden by the request', () => {
    const body = {
      model: 'other',
      prompt: 'a fox',
      negative_prompt: 'blur',
      size: '256x64',
      n: 10,
      num_inference_steps: 9,
      guidance_scale: 1.5,
      guidance_rescale: 0.7,
      seed: 2 ** 32 - 1,
      scheduler: 'euler',
      output_format: 'webp',
      output_compression: 0,
      preview: 'off',
      priority: 10,
      timeout_s: 0.5,
      start_timeout_s: 7,
    };
    expect(resolveImage(body, other, options)).toEqual({
      status: 'resolved',
      request: {
        input: {
          prompt: 'a fox',
          negativePrompt: 'blur',
          width: 256,
          height: 64,
          n: 10,
          numInferenceSteps: 9,
          guidanceScale: 1.5,
          guidanceRescale: 0.7,
          seed: 2 ** 32 - 1,
          scheduler: 'euler',
          outputFormat: 'webp',
          outputCompression: 0,
          previewEvery: 0,
        },
        priority: 10,
        timeoutS: 0.5,
        startTimeoutS: 0.5,
      },
    });
  });
});

describe('loras', () => {
  it('have a scale of 1 by default, and an empty list is omitted', () => {
    const loras = [{ id: 'sunset' }, { id: 'pixels', scale: -0.5 }];
    expect(resolveImage({ prompt: 'a fox', loras }, styled, options)).toMatchObject({
      request: {
        input: {
          loras: [
            { id: 'sunset', scale: 1 },
            { id: 'pixels', scale: -0.5 },
          ],
        },
      },
    });
    expect(resolveImage({ prompt: 'a fox', loras: [] }, styled, options)).toEqual(
      resolveImage({ prompt: 'a fox' }, styled, options),
    );
  });

  it.each([
    [[{ id: 'nobody' }], 'loras.0.id is "nobody", expected one of pixels, large, sunset'],
    [[{ id: 'pixels' }, { id: 'pixels', scale: 2 }], 'loras.1.id is "pixels", expected each lora once'],
    [
      [{ id: 'large' }, { id: 'sunset' }],
      'loras is [{"id":"large"},{"id":"sunset"}], expected ranks of at most 128 together, not 136',
    ],
    [[{ id: 'pixels', scale: 'NaN' }], 'loras.0.scale is "NaN", expected a number from -4 to 4'],
    [[{ id: 'pixels', scale: Number.NaN }], 'loras.0.scale is NaN, expected a number from -4 to 4'],
    [[{ id: 'pixels', scale: '1' }], 'loras.0.scale is "1", expected a number from -4 to 4'],
    [[{ id: 'pixels', scale: 4.1 }], 'loras.0.scale is 4.1, expected a number from -4 to 4'],
    [[{ scale: 1 }], 'loras.0.id is missing, expected text of 1 to 64 characters'],
    [['pixels'], 'loras.0 is "pixels", expected an object with id and, if not 1, scale'],
    [
      [{ id: 'pixels', weight: 1 }],
      'loras.0 is {"id":"pixels","weight":1}, expected an object with id and, if not 1, scale',
    ],
    [
      { pixels: 1 },
      'loras is {"pixels":1}, expected a list of at most 8, each {"id": one of the model’s loras, "scale": a number}',
    ],
  ])('%j: %s', (loras, message) => {
    expect(messagesOf({ prompt: 'a fox', loras }, styled)).toEqual([message]);
  });

  it('are rejected if the model has none', () => {
    expect(messagesOf({ prompt: 'a fox', loras: [{ id: 'pixels' }] })).toEqual([
      'loras.0.id is "pixels", expected no loras: the model has none',
    ]);
  });
});

describe('a model of another server', () => {
  const foreign: ImageCard = {
    ...card,
    takes: ['image'],
    needs: ['image'],
    unsupported: ['negative_prompt', 'seed', 'strength'],
  };
  const image = 'data:image/png;base64,AA==';

  it('requires the files that it needs', () => {
    expect(messagesOf({ prompt: 'a fox' }, foreign)).toEqual(['image is missing, expected one: tiny needs it']);
    expect(messagesOf({ prompt: 'a fox', image }, foreign)).toEqual(['resolved']);
  });

  it('rejects each field that its server does not support', () => {
    const none = 'expected none: the server that runs tiny does not support it';
    expect(messagesOf({ prompt: 'a fox', image, negative_prompt: 'a cat', seed: 7, strength: 1 }, foreign)).toEqual([
      `negative_prompt is "a cat", ${none}`,
      `seed is 7, ${none}`,
      `strength is 1, ${none}`,
    ]);
    expect(messagesOf({ prompt: 'a fox', image, negative_prompt: '' }, foreign)).toEqual(['resolved']);
  });
});

describe('messages name the field, the value received and what was expected', () => {
  const steps = 'expected a whole number from 1 to 200';
  const size = 'expected "auto" or "WIDTHxHEIGHT", each side a multiple of 32 from 64 to 256';
  it.each<[Record<string, unknown>, string, ImageCard?]>([
    [{ num_inference_steps: 'fifty' }, `num_inference_steps is "fifty", ${steps}`],
    [{ num_inference_steps: 201 }, `num_inference_steps is 201, ${steps}`],
    [{ num_inference_steps: 1e300 }, `num_inference_steps is 1e+300, ${steps}`],
    [{ num_inference_steps: Infinity }, `num_inference_steps is Infinity, ${steps}`],
    [{ num_inference_steps: 2.5 }, `num_inference_steps is 2.5, ${steps}`],
    [{ num_inference_steps: [5] }, `num_inference_steps is [5], ${steps}`],
    [{ num_inference_steps: [] }, `num_inference_steps is [], ${steps}`],
    [{ prompt: null }, 'prompt is null, expected text of 1 to 4000 characters'],
    [{ num_inference_steps: 10 }, 'num_inference_steps is 10, expected a whole number from 1 to 9', other],
    [{ prompt: undefined }, 'prompt is missing, expected text of 1 to 4000 characters'],
    [{ prompt: '' }, 'prompt is "", expected text of 1 to 4000 characters'],
    [{ prompt: { a: 1 } }, 'prompt is {"a":1}, expected text of 1 to 4000 characters'],
    [
      { prompt: 'x'.repeat(4001) },
      `prompt is "${'x'.repeat(59)}… (4001 characters), expected text of 1 to 4000 characters`,
    ],
    [{ negative_prompt: 5 }, 'negative_prompt is 5, expected text of at most 4000 characters'],
    [{ size: '100x128' }, `size is "100x128", ${size}`],
    [{ size: '512x128' }, `size is "512x128", ${size}`],
    [{ size: '128' }, `size is "128", ${size}`],
    [{ size: '0128x128' }, `size is "0128x128", ${size}`],
    [{ size: [128, 128] }, `size is [128,128], ${size}`],
    [{ n: 0 }, 'n is 0, expected a whole number from 1 to 10'],
    [{ n: true }, 'n is true, expected a whole number from 1 to 10'],
    [{ guidance_scale: 0.5 }, 'guidance_scale is 0.5, expected a number from 1 to 20'],
    [{ guidance_rescale: 1.5 }, 'guidance_rescale is 1.5, expected a number from 0 to 1'],
    [{ seed: 2 ** 32 }, 'seed is 4294967296, expected a whole number from 0 to 4294967295'],
    [{ seed: -1 }, 'seed is -1, expected a whole number from 0 to 4294967295'],
    [{ scheduler: 'dpm' }, 'scheduler is "dpm", expected one of ddim, euler'],
    [{ output_format: 'gif' }, 'output_format is "gif", expected one of png, jpeg, webp'],
    [{ output_compression: 101 }, 'output_compression is 101, expected a whole number from 0 to 100'],
    [{ preview: 'on' }, 'preview is "on", expected "off" or {"every": a whole number from 1 to 1000}'],
    [{ preview: { every: 0 } }, 'preview.every is 0, expected a whole number from 1 to 1000'],
    [
      { preview: { every: 1, x: 2 } },
      'preview is {"every":1,"x":2}, expected "off" or {"every": a whole number from 1 to 1000}',
    ],
    [{ preview: {} }, 'preview.every is missing, expected a whole number from 1 to 1000'],
    [{ priority: 11 }, 'priority is 11, expected a whole number from 1 to 10'],
    [{ timeout_s: 3601 }, 'timeout_s is 3601, expected a number of seconds from 0.1 to 3600'],
    [{ start_timeout_s: '5' }, 'start_timeout_s is "5", expected a number of seconds from 0.1 to 3600'],
    [{ stepz: 5 }, 'stepz is not a field, did you mean num_inference_steps?'],
    [{ promt: 5 }, 'promt is not a field, did you mean prompt?'],
    [{ width: 5 }, 'width is not a field, did you mean size?'],
  ])('%j', (fields, message, model) => expect(messagesOf({ prompt: 'a fox', ...fields }, model)).toEqual([message]));

  it('lists the fields if no name is similar', () => {
    expect(messagesOf({ prompt: 'x', zzzz: 1 })[0]).toMatch(/^zzzz is not a field, expected one of model, prompt, /);
    expect(messagesOf({ prompt: 'x', ['y'.repeat(500)]: 1 })[0]).toMatch(/^y{60}… \(500 characters\) is not a field/);
  });

  it('quotes field names that are not words', () => {
    for (const name of ['', 'a\nb', '\0', 'n n', 'é'])
      expect(messagesOf({ prompt: 'x', [name]: 1 })[0]).toMatch(`${JSON.stringify(name)} is not a field, `);
  });

  it('bounds the number and length of messages', () => {
    const unknown = Object.fromEntries(Array.from({ length: 50_000 }, (_value, index) => [`zzzz${index}`, index]));
    const messages = messagesOf({ prompt: 'x', ...unknown });
    expect(messages).toHaveLength(6);
    expect(messages.at(-1)).toBe('49995 more names are not fields either');
  });

  it('counts and cuts characters as the schema does', () => {
    const foxes = '🦊'.repeat(4001);
    const cut = `prompt is "${'🦊'.repeat(29)}… (4001 characters), expected text of 1 to 4000 characters`;
    expect(messagesOf({ prompt: foxes })).toEqual([cut]);
    expect(messagesOf({ prompt: foxes.slice(2) })).toEqual(['resolved']);
  });

  it('reports every wrong field once', () => {
    expect(messagesOf({ n: -1.5, seed: 'a' })).toHaveLength(3);
  });

  it.each([[[1]], ['text'], [5], [null], [undefined]])('rejects %j as a body', (body) => {
    expect(messagesOf(body)[0]).toMatch(/^the body is .*, expected a JSON object$/);
  });

  it('survives deeply nested values', () => {
    const deep: unknown = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`);
    expect(messagesOf({ prompt: deep })[0]).toMatch(/^prompt is .*, expected text/);
  });

  it('does not treat inherited object properties as fields', () => {
    expect(messagesOf(JSON.parse('{"prompt": "x", "__proto__": {"n": 4}, "constructor": 1}'))).toHaveLength(2);
  });
});

describe('upscale', () => {
  const able: ImageCard = { ...card, upscales: [2, 4], sizes: { ...card.sizes, max: 4096 } };

  it('is part of the input only if requested', () => {
    const [plain, larger] = [{}, { upscale: 4 }].map((body) =>
      resolveImage({ prompt: 'a fox', ...body }, able, options),
    );
    expect(plain).not.toHaveProperty('request.input.upscale');
    expect(larger).toMatchObject({ request: { input: { width: 128, height: 96, upscale: 4 } } });
  });

  it.each([
    [card, { upscale: 2 }, 'upscale is 2, expected none: the model has no upscaler'],
    [
      { ...able, upscales: [2] as const },
      { upscale: 4 },
      'upscale is 4, expected 2, and no side of more than 8192 pixels then',
    ],
    [able, { upscale: 3 }, 'upscale is 3, expected 2 or 4, and no side of more than 8192 pixels then'],
    [able, { upscale: '2' }, 'upscale is "2", expected 2 or 4, and no side of more than 8192 pixels then'],
    [able, { upscale: 4, size: '64x4096' }, 'upscale is 4, expected 2 or 4, and no side of more than 8192 pixels then'],
  ])('is rejected if the model does not support it: %#', (model, body, message) => {
    expect(messagesOf({ prompt: 'a fox', ...body }, model)).toEqual([message]);
  });
});

/** Request bodies and OpenAPI documents of `POST /v1/images/edits` and `POST /v1/images/variations`. */
import { itemAt } from '@darkroom/core';
import { imageRequestSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { answerErrors, requestIdHeader } from '../../openapi/answer-document.ts';
import { invalidField } from '../../http/api-error.ts';
import { describeErrorAnswer, type RouteDocument } from '../../openapi/api-route.ts';
import { formErrors, submitHeaders } from '../../openapi/submit-document.ts';
import { fileSchema } from '../../openapi/api-schemas.ts';
import { createImagesBody, type ImagesBody, enumField, openaiFields, imageFields } from './images-body.ts';
import { imagesResponseSchema, imagePromptExpected, streamExamples } from './openai-images-schema.ts';

const imageExpected = 'an image: a file of a form, or a URL';
const { image, mask, strength } = imageRequestSchema.shape;
const { style: _style, ...editFields } = openaiFields;

export const editsBody = createImagesBody({
  name: 'ImagesEditRequest',
  image: { ...imageFields, image, mask, strength },
  openai: {
    ...editFields,
    input_fidelity: enumField(
      ['low'],
      'low (strength sets how far the image may change)',
      'Has no effect; accepted because some clients always send OpenAI’s default.',
    ),
  },
  needed: { prompt: imagePromptExpected, image: imageExpected },
});

const { user, response_format } = openaiFields;

/** Prompt of a variation without one: the model sees an empty prompt, so only the input image guides it. */
export const noPrompt = ' ';

export const variationsBody = createImagesBody({
  name: 'ImagesVariationRequest',
  image: { ...imageFields, prompt: imageFields.prompt.optional(), image, strength },
  openai: { user, response_format },
  needed: { image: imageExpected },
});

const referenceExpected = '{"image_url": a data URL or an https URL}';
const reference = z.strictObject({ image_url: z.string() });
const oneReference = z.array(reference).length(1);

/** Converts OpenAI's JSON body with `{"image_url"}` objects to our fields. Throws 400 for other image references. */
export function fromReferences(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { images, ...others } = body as Readonly<Record<string, unknown>>;
  const given: Record<string, unknown> = { ...others };
  if (images !== undefined && images !== null) {
    if (given['image'] != null) throw invalidField('images', images, 'none beside image');
    const { data } = oneReference.safeParse(images);
    if (data === undefined) throw invalidField('images', images, `a list of one ${referenceExpected}`);
    given['image'] = itemAt(data, 0).image_url;
  }
  if (typeof given['mask'] === 'object' && given['mask'] !== null) {
    const { data } = reference.safeParse(given['mask']);
    if (data === undefined) throw invalidField('mask', given['mask'], referenceExpected);
    given['mask'] = data.image_url;
  }
  return given;
}

/** Returns the schema of a form that sends `body` with files. */
function formSchema({ schema }: ImagesBody, name: string): z.ZodType {
  const files = 'mask' in schema.shape ? { image: fileSchema, mask: fileSchema.optional() } : { image: fileSchema };
  return z.strictObject({ ...schema.shape, ...files }).openapi(name);
}

const { image: _file, mask: _maskFile, ...referenceFields } = editsBody.schema.shape;

const images = {
  description: 'The images, or a stream of events.',
  headers: requestIdHeader,
  content: { 'application/json': { schema: imagesResponseSchema } },
};
const badImage = describeErrorAnswer(
  'A field or an image is wrong. Nothing is stored.',
  invalidField('strength', 2, 'a number from 0 to 1'),
);

export const imagesEditsDocument: RouteDocument = {
  method: 'post',
  path: '/v1/images/edits',
  operationId: 'editImage',
  tag: 'Images',
  summary: 'Edit an image (OpenAI-compatible)',
  description: `Like \`POST /v1/images/generations\`, with an input image: \`image\` as a file of a form; or in JSON \`images\`, a list of one
\`{"image_url"}\` with a data URL or an https URL. \`takes\` in \`/v1/models\` shows which models accept images.

The transparent area of \`mask\` is redrawn, the rest stays. Without a mask, the transparent area of the image is redrawn; if the image is
opaque, all of it is redrawn, and \`strength\` sets how much it changes. Several images and file ids are rejected.
Streams have the events \`image_edit.partial_image\` and \`image_edit.completed\`.`,
  request: {
    headers: submitHeaders.pick({ 'idempotency-key': true }),
    body: {
      required: true,
      content: {
        'multipart/form-data': { schema: formSchema(editsBody, 'ImagesEditForm') },
        'application/json': {
          schema: z
            .strictObject({ ...referenceFields, images: oneReference, mask: reference.nullable().optional() })
            .openapi('ImagesEditReferences'),
        },
      },
    },
  },
  responses: {
    ...answerErrors('image'),
    ...formErrors,
    200: { ...images, content: { ...images.content, 'text/event-stream': streamExamples('image_edit') } },
    400: badImage,
  },
};

export const imagesVariationsDocument: RouteDocument = {
  method: 'post',
  path: '/v1/images/variations',
  operationId: 'createImageVariations',
  tag: 'Images',
  summary: 'Create variations of an image (OpenAI-compatible)',
  description:
    'Like `POST /v1/images/edits`, without a mask; the prompt is optional. `strength` sets how much the variations differ from the image.',
  request: {
    headers: submitHeaders.pick({ 'idempotency-key': true }),
    body: {
      required: true,
      content: { 'multipart/form-data': { schema: formSchema(variationsBody, 'ImagesVariationForm') } },
    },
  },
  responses: { ...answerErrors('image'), ...formErrors, 200: images, 400: badImage },
};

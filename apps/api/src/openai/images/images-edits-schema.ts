/** The bodies of `POST /v1/images/edits` and `POST /v1/images/variations`, and how these routes are described. */
import { pictureSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { answerErrors, requestIdHeader } from '../../follow/answer-document.ts';
import { invalidField } from '../../http/api-error.ts';
import { errorAnswer, type RouteDocument } from '../../http/api-route.ts';
import { formErrors, submitHeaders } from '../../submit/submit-document.ts';
import { fileSchema } from '../../v1/api-schemas.ts';
import { createImagesBody, type ImagesBody, oneOf, openaiFields, pictureFields } from './images-body.ts';
import { imagesResponseSchema, promptExpected, streamExamples } from './openai-images-schema.ts';

const imageExpected = 'a picture: a file of a form, or its URL';
const { image, mask, strength } = pictureSchema.shape;
const { style: _style, ...editFields } = openaiFields;

export const editsBody = createImagesBody({
  name: 'ImagesEditRequest',
  picture: { ...pictureFields, image, mask, strength },
  openai: {
    ...editFields,
    input_fidelity: oneOf(
      ['low'],
      'low (strength says how much of the picture stays)',
      'For clients that always send OpenAI’s default.',
    ),
  },
  needed: { prompt: promptExpected, image: imageExpected },
});

const { user, response_format } = openaiFields;

/** Empty for a model: what it draws is led by the picture alone. */
export const noPrompt = ' ';

export const variationsBody = createImagesBody({
  name: 'ImagesVariationRequest',
  picture: { ...pictureFields, prompt: pictureFields.prompt.optional(), image, strength },
  openai: { user, response_format },
  needed: { image: imageExpected },
});

const referenceExpected = '{"image_url": a data URL or an https URL}';
const reference = z.strictObject({ image_url: z.string() });
const oneReference = z.array(reference).length(1);

/** A body of JSON as OpenAI has it, with references in place of files, as one of ours. Throws 400 for other references. */
export function fromReferences(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { images, ...others } = body as Readonly<Record<string, unknown>>;
  const given: Record<string, unknown> = { ...others };
  if (images !== undefined && images !== null) {
    if (given['image'] != null) throw invalidField('images', images, 'none beside image');
    const { data } = oneReference.safeParse(images);
    if (data === undefined) throw invalidField('images', images, `a list of one ${referenceExpected}`);
    given['image'] = data[0]!.image_url;
  }
  if (typeof given['mask'] === 'object' && given['mask'] !== null) {
    const { data } = reference.safeParse(given['mask']);
    if (data === undefined) throw invalidField('mask', given['mask'], referenceExpected);
    given['mask'] = data.image_url;
  }
  return given;
}

/** What a form may hold. */
function formSchema({ schema }: ImagesBody, name: string): z.ZodType {
  const files = 'mask' in schema.shape ? { image: fileSchema, mask: fileSchema.optional() } : { image: fileSchema };
  return z.strictObject({ ...schema.shape, ...files }).openapi(name);
}

const { image: _file, mask: _maskFile, ...referenceFields } = editsBody.schema.shape;

const images = {
  description: 'The pictures, or the events.',
  headers: requestIdHeader,
  content: { 'application/json': { schema: imagesResponseSchema } },
};
const badImage = errorAnswer(
  'A field or a picture is wrong. Nothing is stored.',
  invalidField('strength', 2, 'a number from 0 to 1'),
);

export const imagesEditsDocument: RouteDocument = {
  method: 'post',
  path: '/v1/images/edits',
  summary: 'Ask for pictures of a picture as of OpenAI',
  description: `As \`POST /v1/images/generations\`, with a picture to begin with: \`image\` as a file of a form; or in JSON \`images\`, a list of one \`{"image_url"}\` with
a data URL or an https URL. Models that take pictures say so in \`takes\` of \`/v1/models\`.

What is transparent in \`mask\` is painted anew, and the rest stays. Without a mask that is what is transparent in the picture; an opaque one is painted
anew as a whole, as far as \`strength\` says. Several pictures are refused, and so are ids of files. Streams have the events \`image_edit.partial_image\` and \`image_edit.completed\`.`,
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
    ...answerErrors('picture'),
    ...formErrors,
    200: { ...images, content: { ...images.content, 'text/event-stream': streamExamples('image_edit') } },
    400: badImage,
  },
};

export const imagesVariationsDocument: RouteDocument = {
  method: 'post',
  path: '/v1/images/variations',
  summary: 'Ask for other pictures like one as of OpenAI',
  description:
    'As `POST /v1/images/edits`, without a mask and, unless there is one, without a prompt. `strength` says how far from the picture they may go.',
  request: {
    headers: submitHeaders.pick({ 'idempotency-key': true }),
    body: {
      required: true,
      content: { 'multipart/form-data': { schema: formSchema(variationsBody, 'ImagesVariationForm') } },
    },
  },
  responses: { ...answerErrors('picture'), ...formErrors, 200: images, 400: badImage },
};

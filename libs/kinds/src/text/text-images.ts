/** Images in text requests: which models take them, and how they are stored. */
import { type FieldProblem, invalidValue, type ModelCard } from '@darkroom/core';
import type { ImageSize } from '../request/brought-images.ts';
import type { RequestPolicy } from '../request/request-fields.ts';
import { imagesIn, withImageUrls } from './form/message-content.ts';
import { countTiles, type ImageTokens } from './form/image-tokens.ts';
import type { TextCard } from './form/text-input.ts';
import type { TextBody } from './text-schema.ts';

/** Longest side of a stored image, pixels. Larger images are scaled down. */
const maxSide = 1536;
/** Bytes of all images of a request as PNGs: a worker holds them several times for each slot. */
const maxBytes = 12 * 2 ** 20;

/** Returns whether a model takes images; undefined if only the server that runs it knows. */
export function takesImages(card: ModelCard): boolean | undefined {
  const { kind, takes, codec, images } = card as ModelCard & {
    takes?: readonly string[];
    codec?: string;
    images?: object;
  };
  if (takes === undefined && kind === 'text' && codec === undefined) return undefined;
  return images !== undefined || takes?.includes('image') === true;
}

/** Returns problems with the images of a request, as far as they show without reading them. */
export function imageProblems(
  { image, prompt, messages = [] }: TextBody,
  card: ModelCard & { hasChatTemplate: boolean; images?: Pick<ImageTokens, 'minImages' | 'maxImages'> },
  models: readonly ModelCard[] = [],
): FieldProblem[] {
  const images = imagesIn(messages);
  const field = image === undefined ? images[0]?.field : 'image';
  if (field === undefined)
    return card.images?.minImages === 1
      ? [invalidValue('image', undefined, `one: ${card.id} answers questions about images`)]
      : [];
  const source = image ?? images[0]!.part.image_url.url;
  if (takesImages(card) === false) {
    const other = models.find((each) => each.kind === card.kind && takesImages(each) === true);
    const hint = other === undefined ? '' : `; ${other.id} does`;
    return [invalidValue(field, source, `only text: ${card.id} takes no images${hint}`)];
  }
  const maxImages = card.images?.maxImages ?? Infinity;
  const extra = images[maxImages];
  if (extra !== undefined)
    return [
      invalidValue(extra.field, extra.part.image_url.url, `at most ${maxImages} images: ${card.id} takes no more`),
    ];
  if (image === undefined) return [];
  if (!card.hasChatTemplate)
    return [invalidValue(field, image, `nothing: ${card.id} has no template for messages, which have the images`)];
  return typeof prompt === 'string' ? [] : [invalidValue(field, image, 'nothing without a prompt of text')];
}

/** Returns the problem of a prompt with image tokens that no image has, or with an image that the template omits. */
export function imageTokenProblem(
  ids: readonly number[],
  field: string,
  { id, images }: TextCard,
  sizes: readonly ImageSize[] = [],
): FieldProblem | undefined {
  if (images === undefined) return undefined;
  const count = ids.reduce((sum, token) => sum + Number(token === images.tokenId), 0);
  const expected = images.perTile * sizes.reduce((sum, size) => sum + countTiles(images, size), 0);
  if (count === expected) return undefined;
  const message = `${field}: has ${count} tokens ${images.token}, expected ${expected}: ${id} reads one image for each ${images.token} that its template writes, and texts must not contain it`;
  return { field, code: 'invalid_value', message };
}

/** Images of a request, read and named. */
export type StoredImages =
  | {
      status: 'read';
      messages: TextBody['messages'];
      attachments: ReadonlyMap<string, Uint8Array>;
      sizes: readonly ImageSize[];
    }
  | { status: 'invalid'; problems: readonly FieldProblem[] };

/** Reads the images of a valid request. In the messages returned, the URLs are the names of the attachments. */
export async function readImagesOf(
  { image, prompt, messages = [] }: TextBody,
  { readImage }: RequestPolicy,
): Promise<StoredImages> {
  if (readImage === undefined) throw new TypeError('readImage is missing: this process loads no images');
  const conversation = image === undefined ? messages : [messageOf(image, String(prompt))];
  const attachments = new Map<string, Uint8Array>();
  const sizes: ImageSize[] = [];
  let bytes = 0;
  for (const { part, field } of imagesIn(conversation)) {
    const source = part.image_url.url;
    const result = await readImage({ field: image === undefined ? field : 'image', source }, fittingSide);
    if (result.status === 'invalid') return result;
    bytes += result.data.byteLength;
    if (bytes > maxBytes) return { status: 'invalid', problems: [tooLarge(bytes)] };
    attachments.set(attachmentName(sizes.length), result.data);
    sizes.push(result.size);
  }
  let count = 0;
  return { status: 'read', messages: withImageUrls(conversation, () => attachmentName(count++)), attachments, sizes };
}

function tooLarge(bytes: number): FieldProblem {
  const message = `the images have ${bytes} bytes as PNGs, expected at most ${maxBytes} together: send smaller ones`;
  return { field: 'messages', code: 'invalid_value', message };
}

function messageOf(image: string, prompt: string): NonNullable<TextBody['messages']>[number] {
  return {
    role: 'user',
    content: [
      { type: 'image_url', image_url: { url: image } },
      { type: 'text', text: prompt },
    ],
  };
}

function attachmentName(index: number): string {
  return `image-${index}`;
}

/** Returns the size of an image scaled down to `maxSide`. Keeps the aspect ratio; no side becomes 0. */
function fittingSide({ width, height }: ImageSize): ImageSize {
  const scale = Math.min(1, maxSide / Math.max(width, height));
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) };
}

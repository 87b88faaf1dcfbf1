/** Images in bodies that were not validated yet, and which models need them. */

/** Returns true if a body refers to images. */
export function mentionsImages(body: unknown): boolean {
  const { image, messages } = (body ?? {}) as { image?: unknown; messages?: unknown };
  if (image !== undefined && image !== null) return true;
  return Array.isArray(messages) && messages.some((message) => partsOf(message).some(isImagePart));
}

/** Returns whether a model answers requests without images; some answer questions about images only. */
export function answersWithoutImages(card: object): boolean {
  return (card as { images?: { minImages?: number } }).images?.minImages !== 1;
}

/** Returns the parts of a message. */
export function partsOf(message: unknown): readonly unknown[] {
  const { content } = (message ?? {}) as { content?: unknown };
  return Array.isArray(content) ? content : [];
}

export function isImagePart(part: unknown): boolean {
  return typeof part === 'object' && part !== null && (part as { type?: unknown }).type === 'image_url';
}

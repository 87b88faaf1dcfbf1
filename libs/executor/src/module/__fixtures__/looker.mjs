/** Answers with the URLs of the images in the last message. */
/** @type {import('@darkroom/executor').CreateTextExecutor} */
export const createExecutor = () => ({
  card: { kind: 'text', takesImages: true },
  async *run({ input }) {
    const content = input.params.messages?.at(-1)?.content;
    if (!Array.isArray(content)) throw new Error('the last message has no parts');
    for (const part of content) if (part.type === 'image_url') yield part.image_url.url;
  },
});

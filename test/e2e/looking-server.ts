/** An OpenAI-compatible server with a model that answers with the size of the last image in the chat. */
import sharp from 'sharp';
import { ToyOpenai } from '../../libs/executor/src/testing/toy-openai.ts';

/** The model of the server. */
export const looker = 'looker';

interface ChatBody {
  messages: { content: string | { type: string; image_url?: { url: string } }[] }[];
}

/** Creates the server; the caller starts and stops it. */
export function createLookingServer(): ToyOpenai {
  const toy = new ToyOpenai();
  toy.models = [{ id: looker, object: 'model', created: 7, owned_by: 'toys' }];
  toy.fault = async (_request, response, body) => {
    if (body === undefined) return false;
    const parts = (body as ChatBody).messages.flatMap(({ content }) => (typeof content === 'string' ? [] : content));
    const images = parts.flatMap(({ image_url: image }) => (image === undefined ? [] : [image.url]));
    const { width, height } = await sharp(Buffer.from(images.at(-1)!.split(',')[1]!, 'base64')).metadata();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const send = (choice: object) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`);
    send({ delta: { content: 'An image ' } });
    send({ delta: { content: `of ${width}x${height}` } });
    send({ delta: {}, finish_reason: 'stop' });
    response.end('data: [DONE]\n\n');
    return true;
  };
  return toy;
}

import type { PictureRequest } from '@darkroom/client';
import type { Session } from '../server/session.ts';

/**
 * A line for a shell that asks for the same pictures again. It takes the key, if there is one, from the shell, so that
 * it can be shown to others; and what they began with from files, which nobody wants in a line.
 */
export function curlLine({ baseUrl, hasKey }: Pick<Session, 'baseUrl' | 'hasKey'>, request: PictureRequest): string {
  const { preview: _, ...shown } = request;
  const words = ['curl', '-s', quoted(new URL('v1/predict', baseUrl).href)];
  const isForm = shown.image !== undefined;
  if (!isForm) words.push('-H', quoted('content-type: application/json'));
  if (hasKey) words.push('-H', '"authorization: Bearer $DARKROOM_API_KEY"');
  words.push(...(isForm ? formWords(shown) : ['-d', quoted(JSON.stringify(shown))]));
  return words.join(' ');
}

const files: Readonly<Record<string, string>> = { image: 'image=@picture.png', mask: 'mask=@mask.png' };

/** Each field of its own: texts as they are, the others as JSON. */
function formWords(request: object): string[] {
  const fields = Object.entries(request).filter(([, value]) => value !== undefined);
  return fields.flatMap(([name, value]) => {
    const file = files[name];
    if (file !== undefined) return ['-F', file];
    // With -F a text that begins with @ would be the name of a file.
    return ['--form-string', quoted(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)];
  });
}

/** In single quotes a shell takes everything as it is, but for the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

import type { ImageRequest } from '@darkroom/client';
import type { Session } from '../server/session.ts';

/**
 * Returns a shell command that requests the same images. The API key comes from an environment variable, so that the
 * command can be shared; input images come from files, as they are too large for a command.
 */
export function curlLine({ baseUrl, hasKey }: Pick<Session, 'baseUrl' | 'hasKey'>, request: ImageRequest): string {
  const { preview: _, ...shown } = request;
  const words = ['curl', '-s', quoted(new URL('v1/predict', baseUrl).href)];
  const isForm = shown.image !== undefined;
  if (!isForm) words.push('-H', quoted('content-type: application/json'));
  if (hasKey) words.push('-H', '"authorization: Bearer $DARKROOM_API_KEY"');
  words.push(...(isForm ? formWords(shown) : ['-d', quoted(JSON.stringify(shown))]));
  return words.join(' ');
}

const files: Readonly<Record<string, string>> = { image: 'image=@image.png', mask: 'mask=@mask.png' };

/** Returns one option per field: strings unchanged, others as JSON. */
function formWords(request: object): string[] {
  const fields = Object.entries(request).filter(([, value]) => value !== undefined);
  return fields.flatMap(([name, value]) => {
    const file = files[name];
    if (file !== undefined) return ['-F', file];
    // With -F, a value that begins with @ would be a file name.
    return ['--form-string', quoted(`${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)];
  });
}

/** Quotes a text for a shell: single quotes disable everything but the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

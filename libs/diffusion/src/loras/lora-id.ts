import { createHash } from 'node:crypto';

/** Valid ids: they appear in URLs and Redis keys. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const hashLength = 6;
const maxSlug = 64 - hashLength - 1;

/**
 * Returns the id of an adapter. A name that is a valid id is returned unchanged; any other becomes a slug with six
 * digits of the name's hash. The id does not depend on other files, and different names have different ids.
 *
 * @param name of the file, without its extension.
 * @example loraId('pixels_v1.2'); // 'pixels_v1.2'
 * @example loraId('Émail (v2)'); // 'Email-v2-' and six digits
 */
export function loraId(name: string): string {
  if (idPattern.test(name)) return name;
  // File systems may return the same name in composed or decomposed Unicode.
  const hash = createHash('sha256').update(name.normalize('NFC')).digest('hex').slice(0, hashLength);
  const plain = name.normalize('NFKD').replaceAll(/\p{Mark}/gu, '');
  const slug = plain.replaceAll(/[^A-Za-z0-9._]+/g, '-').replace(/^[._-]+/, '');
  return `${slug.slice(0, maxSlug).replace(/[._-]+$/, '') || 'lora'}-${hash}`;
}

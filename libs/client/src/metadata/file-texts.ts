/**
 * Reads the metadata texts of PNG, JPEG and WebP files. Of a broken or truncated file, it reads as much as possible.
 */

/** `darkroom`: Darkroom's JSON. `parameters`: the text of Stable Diffusion web UI, which many programs write. */
export interface FileTexts {
  darkroom?: string;
  parameters?: string;
}

export function textsOf(file: Uint8Array): FileTexts {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  try {
    if (latin1(file, 1, 4) === 'PNG') return pngTexts(file, view);
    if (file[0] === 0xff && file[1] === 0xd8) return jpegTexts(file, view);
    if (latin1(file, 0, 4) === 'RIFF' && latin1(file, 8, 12) === 'WEBP') return webpTexts(file, view);
  } catch (error) {
    // A length beyond the end of the file.
    if (!(error instanceof RangeError)) throw error;
  }
  return {};
}

function latin1(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return new TextDecoder('latin1').decode(bytes.subarray(start, end));
}

/** Skips compressed texts: the programs that write these two do not compress them. */
function pngTexts(file: Uint8Array, view: DataView): FileTexts {
  const texts: Record<string, string> = {};
  for (let at = 8; at + 12 <= file.length;) {
    const length = view.getUint32(at);
    const type = latin1(file, at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + length);
    const keyword = latin1(data, 0, Math.max(0, data.indexOf(0)));
    if (type === 'tEXt') texts[keyword] ??= latin1(data, keyword.length + 1);
    if (type === 'iTXt') texts[keyword] ??= internationalText(data.subarray(keyword.length + 1)) ?? '';
    at += 12 + length;
  }
  const { darkroom, parameters } = texts;
  return { ...(darkroom && { darkroom }), ...(parameters && { parameters }) };
}

/** Returns the text after two flags, a language and a translated keyword. */
function internationalText(data: Uint8Array): string | undefined {
  const isCompressed = data[0] !== 0;
  const language = data.indexOf(0, 2);
  const keyword = language === -1 ? -1 : data.indexOf(0, language + 1);
  return isCompressed || keyword === -1 ? undefined : new TextDecoder().decode(data.subarray(keyword + 1));
}

const exifName = 'Exif\0\0';
const xmpName = 'http://ns.adobe.com/xap/1.0/\0';

function jpegTexts(file: Uint8Array, view: DataView): FileTexts {
  let texts: FileTexts = {};
  for (let at = 2; at + 4 <= file.length && file[at] === 0xff && file[at + 1] !== 0xda;) {
    const end = at + 2 + view.getUint16(at + 2);
    const data = file.subarray(at + 4, end);
    if (file[at + 1] === 0xe1) texts = { ...texts, ...segmentTexts(data) };
    at = end;
  }
  return texts;
}

function segmentTexts(data: Uint8Array): FileTexts {
  if (latin1(data, 0, exifName.length) === exifName) return exifTexts(data.subarray(exifName.length));
  return latin1(data, 0, xmpName.length) === xmpName ? xmpTexts(data.subarray(xmpName.length)) : {};
}

function webpTexts(file: Uint8Array, view: DataView): FileTexts {
  let texts: FileTexts = {};
  for (let at = 12; at + 8 <= file.length;) {
    const name = latin1(file, at, at + 4);
    const length = view.getUint32(at + 4, true);
    const data = file.subarray(at + 8, at + 8 + length);
    // Some programs write this prefix, which belongs in JPEG files.
    const isNamed = latin1(data, 0, exifName.length) === exifName;
    if (name === 'EXIF') texts = { ...texts, ...exifTexts(isNamed ? data.subarray(exifName.length) : data) };
    if (name === 'XMP ') texts = { ...texts, ...xmpTexts(data) };
    at += 8 + length + (length % 2);
  }
  return texts;
}

const exifDirectory = 0x8769;
const userComment = 0x9286;

function exifTexts(block: Uint8Array): FileTexts {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  const isLittle = view.getUint16(0) === 0x4949;
  /** Returns the offset of a directory's field. */
  const find = (directory: number, tag: number): number | undefined => {
    const count = view.getUint16(directory, isLittle);
    for (let index = 0; index < count; index++)
      if (view.getUint16(directory + 2 + index * 12, isLittle) === tag) return directory + 2 + index * 12;
    return undefined;
  };
  const pointer = find(view.getUint32(4, isLittle), exifDirectory);
  const field = pointer === undefined ? undefined : find(view.getUint32(pointer + 8, isLittle), userComment);
  if (field === undefined) return {};
  const start = view.getUint32(field + 8, isLittle);
  return { parameters: commentText(block.subarray(start, start + view.getUint32(field + 4, isLittle))) };
}

/** Decodes a comment after its eight bytes of encoding. Not every program uses the byte order of the block. */
function commentText(data: Uint8Array): string {
  const text = data.subarray(8);
  if (latin1(data, 0, 7) !== 'UNICODE') return new TextDecoder().decode(text);
  return new TextDecoder(text[0] === 0 ? 'utf-16be' : 'utf-16le').decode(text);
}

/** Reads the text from an element, as Darkroom writes it, or an attribute, as some programs that rewrite files do. */
function xmpTexts(block: Uint8Array): FileTexts {
  const found = /darkroom:request(?:="(?<attribute>[^"]*)"|>(?<element>[^<]*)<)/.exec(new TextDecoder().decode(block));
  const escaped = found?.groups?.['attribute'] ?? found?.groups?.['element'];
  return escaped === undefined ? {} : { darkroom: unescaped(escaped) };
}

const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescaped(xml: string): string {
  return xml.replaceAll(
    /&(?:#x(?<hex>[\da-f]{1,5})|#(?<decimal>\d{1,6})|(?<name>\w+));/gi,
    (all, ...rest: unknown[]) => {
      const { hex, decimal, name } = rest.at(-1) as Record<string, string | undefined>;
      if (name !== undefined) return named[name] ?? all;
      return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
    },
  );
}

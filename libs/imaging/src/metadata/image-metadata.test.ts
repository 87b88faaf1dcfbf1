/** Tests the recipes in image files, as our client and other programs read them. */
import { readMetadata } from '@darkroom/client';
import { outputFormats, type ImageRecipe } from '@darkroom/kinds';
import { load } from 'exifreader';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { encodeImage, type EncodedImage } from '../codec/encode-image.ts';
import { withMetadata, withoutMetadata } from './image-metadata.ts';

const recipe: ImageRecipe = {
  model: 'emoji-sd',
  prompt: 'a "grüner" fox & an owl <3 🦊',
  negative_prompt: 'blurry\nor dark',
  size: '62x33',
  num_inference_steps: 12,
  guidance_scale: 3.5,
  guidance_rescale: 0.25,
  seed: 4_294_967_295,
  scheduler: 'dpmpp_2m_karras',
};
const parameters = [
  'a "grüner" fox & an owl <3 🦊',
  'Negative prompt: blurry\nor dark',
  'Steps: 12, Sampler: DPM++ 2M Karras, CFG scale: 3.5, Seed: 4294967295, Size: 62x33, Model: emoji-sd, Version: Darkroom',
].join('\n');

/** Encodes an image whose size, 62 × 33, is no multiple of the codecs' blocks. */
async function encodeSample(outputFormat: (typeof outputFormats)[number]): Promise<EncodedImage> {
  const [width, height] = [62, 33];
  const data = Uint8Array.from({ length: width * height * 3 }, (_value, at) => (at * 7) % 256);
  return encodeImage({ data, facts: { width, height } }, { outputFormat, outputCompression: 90 });
}

function tagsOf({ data }: EncodedImage) {
  return load(Buffer.from(data), { async: false });
}

async function pixelsOf({ data }: EncodedImage): Promise<Buffer> {
  return sharp(data).raw().toBuffer();
}

describe.each(outputFormats)('metadata in a %s file', (format) => {
  it('is read back by our client as a request body for the same image', async () => {
    const more: ImageRecipe = { ...recipe, strength: 0.6, upscale: 2, loras: [{ id: 'ink', scale: -0.8 }] };
    for (const each of [recipe, more]) {
      const { data, contentType } = withMetadata(await encodeSample(format), each);
      expect(contentType).toBe(`image/${format}`);
      expect(readMetadata(data)).toEqual(each);
    }
  });

  it('changes no pixel, and its removal restores the file byte by byte', async () => {
    const plain = await encodeSample(format);
    const tagged = withMetadata(plain, recipe);
    expect(await pixelsOf(tagged)).toEqual(await pixelsOf(plain));
    expect(await sharp(tagged.data).metadata()).toMatchObject({ format, width: 62, height: 33 });
    expect(Buffer.compare(withoutMetadata(tagged).data, plain.data)).toBe(0);
    expect(readMetadata(plain.data)).toBeUndefined();
  });

  it('replaces earlier metadata', async () => {
    const plain = await encodeSample(format);
    const other = withMetadata(plain, { ...recipe, prompt: 'an owl' });
    expect(withMetadata(other, recipe)).toEqual(withMetadata(plain, recipe));
  });

  it('removal returns the same bytes without a copy if there is no metadata', async () => {
    const plain = await encodeSample(format);
    expect(withoutMetadata(plain).data).toBe(plain.data);
  });

  it('holds the longest prompts of any characters', async () => {
    const plain = await encodeSample(format);
    for (const character of ['&', '<', '"', '\u0001', 'x', '漢', '🦊'.slice(0, 2)]) {
      const long = character.repeat(4000 / character.length);
      const worst = { ...recipe, prompt: long, negative_prompt: long };
      expect(readMetadata(withMetadata(plain, worst).data)).toEqual(worst);
    }
  });

  it('removal does not change other files, and truncated files cause no error', async () => {
    const plain = await encodeSample(format);
    const { data, contentType } = withMetadata(plain, recipe);
    for (let length = 0; length < data.length; length += 7) {
      const cut = { data: data.subarray(0, length), contentType };
      expect(() => [withoutMetadata(cut), withMetadata(cut, recipe)]).not.toThrow();
    }
    const text = { data: Buffer.from('this is not an image, whatever its type says'), contentType };
    expect(withoutMetadata(text).data).toBe(text.data);
  });
});

describe('metadata for other programs', () => {
  it('is in the texts of a png', async () => {
    const tags = tagsOf(withMetadata(await encodeSample('png'), recipe));
    expect(tags).toMatchObject({ parameters: { value: parameters }, 'Image Width': { value: 62 } });
    expect(JSON.parse(tags['darkroom']!.description)).toEqual(recipe);
    const { comments } = await sharp(withMetadata(await encodeSample('png'), recipe).data).metadata();
    expect(comments).toContainEqual({ keyword: 'parameters', text: parameters });
  });

  it('is in tEXt chunks, which every reader supports, if it is Latin-1', async () => {
    const { data } = withMetadata(await encodeSample('png'), { ...recipe, prompt: 'ein grüner Fuchs' });
    expect(Buffer.from(data).includes('tEXtparameters\0ein gr\xFCner Fuchs\n', 'latin1')).toBe(true);
  });

  it.each(['jpeg', 'webp'] as const)('is in the EXIF comment, software and XMP caption of a %s', async (format) => {
    const tags = tagsOf(withMetadata(await encodeSample(format), recipe));
    expect(tags).toMatchObject({
      Software: { description: 'Darkroom' },
      CreatorTool: { description: 'Darkroom' },
      description: { description: recipe.prompt },
    });
    // Eight bytes name the encoding; then follows UTF-16, big-endian like the EXIF block.
    const comment = Buffer.from((tags as { UserComment?: { value: number[] } }).UserComment!.value);
    expect(comment.toString('latin1', 0, 8)).toBe('UNICODE\0');
    expect(comment.subarray(8).swap16().toString('utf16le')).toBe(parameters);
    expect(JSON.parse(String(tags['request']?.description))).toEqual(recipe);
  });

  it('is removed, even if another program wrote it', async () => {
    const plain = await encodeSample('jpeg');
    const data = await sharp(plain.data)
      .withExif({ IFD0: { Copyright: 'me' } })
      .withXmp('<x/>')
      .jpeg()
      .toBuffer();
    expect(tagsOf({ data, contentType: 'image/jpeg' })).toHaveProperty('Copyright');
    expect(tagsOf(withoutMetadata({ data, contentType: 'image/jpeg' }))).not.toHaveProperty('Copyright');
    const webp = await sharp(plain.data)
      .withExif({ IFD0: { Copyright: 'me' } })
      .webp()
      .toBuffer();
    const simple = await sharp(plain.data).webp().toBuffer();
    expect(Buffer.compare(withoutMetadata({ data: webp, contentType: 'image/webp' }).data, simple)).toBe(0);
  });

  it('leaves the alpha of a lossless webp unchanged', async () => {
    const raw = { width: 3, height: 2, channels: 4 } as const;
    const data = await sharp(Buffer.alloc(24, 100), { raw }).webp({ lossless: true }).toBuffer();
    const plain = { data, contentType: 'image/webp' };
    const tagged = withMetadata(plain, recipe);
    expect(await sharp(tagged.data).metadata()).toMatchObject({ width: 3, height: 2, hasAlpha: true });
    expect(await pixelsOf(tagged)).toEqual(await pixelsOf(plain));
    expect(Buffer.compare(withoutMetadata(tagged).data, data)).toBe(0);
  });
});

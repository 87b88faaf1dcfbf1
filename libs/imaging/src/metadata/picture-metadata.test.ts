/** What files say of how their pictures were made, read by programs of others and by our own client. */
import { readMetadata } from '@darkroom/client';
import { outputFormats, type PictureRecipe } from '@darkroom/kinds';
import { load } from 'exifreader';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { encodePicture, type EncodedPicture } from '../encode-picture.ts';
import { withMetadata, withoutMetadata } from './picture-metadata.ts';

const recipe: PictureRecipe = {
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

/** Of odd sizes, as blocks are padded. */
async function encoded(outputFormat: (typeof outputFormats)[number]): Promise<EncodedPicture> {
  const [width, height] = [62, 33];
  const data = Uint8Array.from({ length: width * height * 3 }, (_value, at) => (at * 7) % 256);
  return encodePicture({ data, facts: { width, height } }, { outputFormat, outputCompression: 90 });
}

function tagsOf({ data }: EncodedPicture) {
  return load(Buffer.from(data), { async: false });
}

async function pixelsOf({ data }: EncodedPicture): Promise<Buffer> {
  return sharp(data).raw().toBuffer();
}

describe.each(outputFormats)('of %s', (format) => {
  it('is read by our client, as a body for the same picture', async () => {
    const more: PictureRecipe = { ...recipe, strength: 0.6, upscale: 2, loras: [{ id: 'ink', scale: -0.8 }] };
    for (const each of [recipe, more]) {
      const { data, contentType } = withMetadata(await encoded(format), each);
      expect(contentType).toBe(`image/${format}`);
      expect(readMetadata(data)).toEqual(each);
    }
  });

  it('leaves every pixel as it is, and goes without a trace', async () => {
    const plain = await encoded(format);
    const said = withMetadata(plain, recipe);
    expect(await pixelsOf(said)).toEqual(await pixelsOf(plain));
    expect(await sharp(said.data).metadata()).toMatchObject({ format, width: 62, height: 33 });
    expect(Buffer.compare(withoutMetadata(said).data, plain.data)).toBe(0);
    expect(readMetadata(plain.data)).toBeUndefined();
  });

  it('takes the place of what there was, so that twice is once', async () => {
    const plain = await encoded(format);
    const other = withMetadata(plain, { ...recipe, prompt: 'an owl' });
    expect(withMetadata(other, recipe)).toEqual(withMetadata(plain, recipe));
  });

  it('costs no copy to take away where there is none', async () => {
    const plain = await encoded(format);
    expect(withoutMetadata(plain).data).toBe(plain.data);
  });

  it('fits the longest prompts of any characters', async () => {
    const plain = await encoded(format);
    for (const character of ['&', '<', '"', '\u0001', 'x', '漢', '🦊'.slice(0, 2)]) {
      const long = character.repeat(4000 / character.length);
      const worst = { ...recipe, prompt: long, negative_prompt: long };
      expect(readMetadata(withMetadata(plain, worst).data)).toEqual(worst);
    }
  });

  it('stays away from what is no such file, and goes wrong on none that is cut', async () => {
    const plain = await encoded(format);
    const { data, contentType } = withMetadata(plain, recipe);
    for (let length = 0; length < data.length; length += 7) {
      const cut = { data: data.subarray(0, length), contentType };
      expect(() => [withoutMetadata(cut), withMetadata(cut, recipe)]).not.toThrow();
    }
    const text = { data: Buffer.from('this is not a picture, whatever its type says'), contentType };
    expect(withoutMetadata(text).data).toBe(text.data);
  });
});

describe('other programs read', () => {
  it('the texts of a png', async () => {
    const tags = tagsOf(withMetadata(await encoded('png'), recipe));
    expect(tags).toMatchObject({ parameters: { value: parameters }, 'Image Width': { value: 62 } });
    expect(JSON.parse(tags['darkroom']!.description)).toEqual(recipe);
    const { comments } = await sharp(withMetadata(await encoded('png'), recipe).data).metadata();
    expect(comments).toContainEqual({ keyword: 'parameters', text: parameters });
  });

  it('texts of Latin-1 in the older kind of chunk, which every reader knows', async () => {
    const { data } = withMetadata(await encoded('png'), { ...recipe, prompt: 'ein grüner Fuchs' });
    expect(Buffer.from(data).includes('tEXtparameters\0ein gr\xFCner Fuchs\n', 'latin1')).toBe(true);
  });

  it.each(['jpeg', 'webp'] as const)('the comment, the software and the caption of a %s', async (format) => {
    const tags = tagsOf(withMetadata(await encoded(format), recipe));
    expect(tags).toMatchObject({
      Software: { description: 'Darkroom' },
      CreatorTool: { description: 'Darkroom' },
      description: { description: recipe.prompt },
    });
    // Behind eight bytes that say that it is Unicode; big-endian, as the block is.
    const comment = Buffer.from((tags as { UserComment?: { value: number[] } }).UserComment!.value);
    expect(comment.toString('latin1', 0, 8)).toBe('UNICODE\0');
    expect(comment.subarray(8).swap16().toString('utf16le')).toBe(parameters);
    expect(JSON.parse(String(tags['request']?.description))).toEqual(recipe);
  });

  it('whatever another program wrote is taken away too', async () => {
    const plain = await encoded('jpeg');
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

  it('a lossless webp with its alpha', async () => {
    const raw = { width: 3, height: 2, channels: 4 } as const;
    const data = await sharp(Buffer.alloc(24, 100), { raw }).webp({ lossless: true }).toBuffer();
    const plain = { data, contentType: 'image/webp' };
    const said = withMetadata(plain, recipe);
    expect(await sharp(said.data).metadata()).toMatchObject({ width: 3, height: 2, hasAlpha: true });
    expect(await pixelsOf(said)).toEqual(await pixelsOf(plain));
    expect(Buffer.compare(withoutMetadata(said).data, data)).toBe(0);
  });
});

/** Maximum characters of a caption. The block must fit into a JPEG segment together with the recipe. */
const captionCharacters = 1000;

/**
 * Builds an XMP block with a caption (`dc:description`), the software, and Darkroom's JSON
 * (https://github.com/adobe/XMP-Toolkit-SDK/blob/main/docs/XMPSpecificationPart1.pdf).
 */
export function xmpOf({ software, caption, json }: { software: string; caption: string; json: string }): Buffer {
  const block = `<?xpacket begin="\uFEFF" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:darkroom="urn:darkroom:image:">
<xmp:CreatorTool>${xmlOf(software)}</xmp:CreatorTool>
<dc:description><rdf:Alt><rdf:li xml:lang="x-default">${xmlOf(cut(caption))}</rdf:li></rdf:Alt></dc:description>
<darkroom:request>${xmlOf(json)}</darkroom:request>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="w"?>`;
  return Buffer.from(block, 'utf8');
}

/** Cuts the caption, but not through a surrogate pair. */
function cut(text: string): string {
  return text.slice(0, captionCharacters).replace(/[\uD800-\uDBFF]$/, '');
}

/** Escapes text, and removes characters that XML 1.0 does not allow. */
function xmlOf(text: string): string {
  const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
  return text
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replaceAll(/[&<>]/g, (character) => escapes[character]!);
}

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Checks the anchors of all links in a built site, which VitePress does not. Throws if one does not exist. */
export function checkAnchors(site: string): void {
  const files = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
  const pages = new Map(files.map((name) => [name, readFileSync(join(site, name), 'utf8')]));
  const broken = [...pages].flatMap(([page, html]) =>
    [...html.matchAll(/ href="(?<path>[^":#]*)#(?<anchor>[^"]+)"/g)]
      .filter(({ groups }) => {
        const target = groups!['path'] === '' ? page : join(dirname(page), groups!['path']!);
        return !pages.get(target)?.includes(` id="${decodeURIComponent(groups!['anchor']!)}"`);
      })
      .map(({ groups }) => `${page}: ${groups!['path']}#${groups!['anchor']}`),
  );
  if (broken.length > 0) throw new Error(`broken links:\n${broken.join('\n')}`);
}

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';

/**
 * Renders links to files of the repository that are not pages, such as `../models/emoji-sd`, as text, since the site
 * does not contain these files. Throws if the file does not exist. VitePress checks links between pages.
 */
export function unlinkSources(markdown: MarkdownRenderer, docs: string): void {
  markdown.core.ruler.push('unlink-sources', ({ tokens, env }) => {
    const page = join(docs, (env as { relativePath: string }).relativePath);
    for (const { children } of tokens)
      for (const [index, token] of children?.entries() ?? []) {
        const [path = ''] = token.type === 'link_open' ? token.attrGet('href')!.split('#') : [];
        const target = join(dirname(page), decodeURI(path));
        const isPage = target.startsWith(docs) && target.endsWith('.md');
        if (path === '' || /^[a-z]+:/.test(path) || isPage) continue;
        if (!existsSync(target)) throw new Error(`${page}: broken link: ${path} does not exist`);
        const end = children!.findIndex(({ type }, at) => at > index && type === 'link_close');
        for (const part of [token, children![end]!]) Object.assign(part, { type: 'text', tag: '', content: '' });
      }
  });
}

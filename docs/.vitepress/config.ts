/** The site of these pages: `npm run docs` builds it into dist/docs. docs/README.md is its first page and its sidebar. */
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DefaultTheme, defineConfig } from 'vitepress';
import { checkAnchors } from './check-anchors.ts';
import { unlinkSources } from './unlink-sources.ts';

const docs = join(import.meta.dirname, '..');
const icon = encodeURIComponent(readFileSync(join(docs, '../apps/page/src/icon.svg'), 'utf8'));

export default defineConfig({
  title: 'Darkroom',
  description: 'Serve your own image and text models to many users.',
  lang: 'en',
  // Relative, so that the site works under any path.
  base: './',
  head: [
    ['link', { rel: 'icon', href: `data:image/svg+xml,${icon}` }],
    ['style', {}, '.vp-doc pre { overflow-x: auto; }'],
  ],
  rewrites: { 'README.md': 'index.md' },
  outDir: join(docs, '../dist/docs'),
  cacheDir: join(docs, '../.darkroom/vitepress'),
  markdown: {
    // `<id>` in a text is not an element.
    html: false,
    languageAlias: { env: 'dotenv', promql: 'txt', caddyfile: 'txt' },
    config: (markdown) => unlinkSources(markdown, docs),
    // Anchors as on GitHub.
    anchor: {
      slugify: (heading) =>
        heading
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{M}\p{N}_ -]/gu, '')
          .replaceAll(' ', '-'),
    },
  },
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' },
  },
  buildEnd({ outDir }) {
    checkAnchors(outDir);
    // For programs: the pages as Markdown, and their list. docs/README.md has the form of llms.txt.
    cpSync(docs, outDir, { recursive: true, filter: (path) => !path.startsWith(import.meta.dirname) });
    cpSync(join(docs, 'README.md'), join(outDir, 'llms.txt'));
  },
});

/** Returns the sections of docs/README.md with their pages, and one section for each folder of pages. */
function sidebar(): DefaultTheme.SidebarItem[] {
  const [, ...sections] = readFileSync(join(docs, 'README.md'), 'utf8').split(/^## /m);
  const listed = sections.map((section) => ({
    text: section.split('\n')[0]!,
    items: [...section.matchAll(/^- \[(?<text>.+?)\]\((?<page>[\w-]+)\.md\)/gm)].map(({ groups }) => ({
      text: groups!['text']!,
      link: `/${groups!['page']}`,
    })),
  }));
  return [...listed, folder('Benchmarks', 'benchmarks'), folder('Decisions', 'decisions')];
}

function folder(text: string, name: string): DefaultTheme.SidebarItem {
  const pages = readdirSync(join(docs, name)).filter((file) => file.endsWith('.md'));
  const items = pages.map((file) => ({
    text: /^# (.*)/.exec(readFileSync(join(docs, name, file), 'utf8'))![1]!,
    link: `/${name}/${file.replace('.md', '')}`,
  }));
  return { text, items, collapsed: true };
}

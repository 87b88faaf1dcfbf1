import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  // Relative, so that the page works behind a proxy with a path prefix.
  base: './',
  publicDir: false,
  resolve: { alias: { '@darkroom/client': `${import.meta.dirname}/../../libs/client/src/index.ts` } },
  build: {
    // The first browsers with light-dark(), the newest feature that the page uses.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // No data: URLs: the Content-Security-Policy allows them for previews only.
    assetsInlineLimit: 0,
    modulePreload: false,
    rolldownOptions: { input: ['client.html', 'admin.html'].map((page) => `${import.meta.dirname}/${page}`) },
  },
  logLevel: 'warn',
});

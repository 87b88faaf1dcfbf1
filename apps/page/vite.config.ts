import { defaultClientConditions, defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  // Relative, so that the page works behind a proxy that serves us under a prefix.
  base: './',
  publicDir: false,
  resolve: { conditions: ['darkroom-source', ...defaultClientConditions] },
  build: {
    // The first browsers with light-dark(), the newest thing that the page uses.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // Files only: the page's Content-Security-Policy takes no data: URLs but previews.
    assetsInlineLimit: 0,
    modulePreload: false,
    rolldownOptions: { input: ['client.html', 'admin.html'].map((page) => `${import.meta.dirname}/${page}`) },
  },
  logLevel: 'warn',
});

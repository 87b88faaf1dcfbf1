import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Api } from '../http/api-route.ts';
import { pageFile, pageHeaders } from './page-file.ts';

/** What the page loads: from the package on this machine, never from somebody else's. */
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

// Paths are relative, so that the page works behind a proxy that serves us under a prefix.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Darkroom API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="icon" href="docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

// Without validatorUrl the page would show the document to a server on the internet.
const startScript = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#swagger-ui', validatorUrl: null });\n`;

const headers = pageHeaders();

/** The OpenAPI document of all routes that are there when it is first asked for, and a page that shows it. */
export function addDocsRoutes(api: Api): void {
  const directory = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  let document: string | undefined;
  api.get('/openapi.json', (c) => {
    // Building it takes tens of milliseconds in which nobody else is answered.
    document ??= JSON.stringify(openApiDocument(api));
    return c.body(document, 200, { 'Content-Type': 'application/json' });
  });
  api.get('/docs', (c) => c.html(page, 200, headers));
  api.get('/docs/start.js', (c) =>
    c.body(startScript, 200, { ...headers, 'Content-Type': 'text/javascript; charset=utf-8' }),
  );
  for (const name of assets)
    api.get(`/docs/${name}`, async (c) => {
      const file = await pageFile(c, join(directory, name), { ...headers, 'Cache-Control': 'public, max-age=3600' });
      return file ?? c.notFound();
    });
}

function openApiDocument(api: Api) {
  api.openAPIRegistry.registerComponent('securitySchemes', 'key', { type: 'http', scheme: 'bearer' });
  return api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Darkroom',
      version: '0.1.0',
      description: 'Submit a prompt, get an id, watch the picture develop, fetch it.',
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    // From where the document is: a proxy may serve us under a prefix.
    servers: [{ url: './' }],
    // Also without: a server may have no keys.
    security: [{}, { key: [] }],
  });
}

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { answerStaticText } from '../http/answer-text.ts';
import { addExamples } from '../openapi/add-examples.ts';
import { eventSchema } from '../openapi/event-schemas.ts';
import { introduction } from '../openapi/introduction.ts';
import { tags } from '../openapi/tags.ts';
import { markNullableFields } from './nullable-fields.ts';
import { pageFile, pageHeaders } from './page-file.ts';
import type { Api } from '../http/api-env.ts';

/** Files of the page, served from the local swagger-ui package, not from a CDN. */
const assets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];

// Paths are relative, so that the page works behind a proxy with a path prefix.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Darkroom API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/style.css">
<link rel="icon" href="docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

// By default, Swagger UI sends the document to a public validator.
const startScript = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#swagger-ui', validatorUrl: null });\n`;

// No route has links, and their empty column makes the page wider than a phone.
const style = '.swagger-ui .response-col_links { display: none }\n';

const headers = pageHeaders();

/** Adds the OpenAPI document and a page that shows it. The document has all routes that exist on its first request. */
export function addDocsRoutes(api: Api): void {
  const directory = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  let document: Uint8Array | undefined;
  api.get('/openapi.json', (c) => {
    // Built once: building blocks the event loop for tens of milliseconds.
    document ??= Buffer.from(JSON.stringify(openApiDocument(api)));
    return answerStaticText(c, document, { 'Content-Type': 'application/json' });
  });
  api.get('/docs', (c) => c.html(page, 200, headers));
  const texts = { 'start.js': ['text/javascript', startScript], 'style.css': ['text/css', style] } as const;
  for (const [name, [type, text]] of Object.entries(texts))
    api.get(`/docs/${name}`, (c) => c.body(text, 200, { ...headers, 'Content-Type': `${type}; charset=utf-8` }));
  for (const name of assets)
    api.get(`/docs/${name}`, async (c) => {
      const file = await pageFile(c, join(directory, name), { ...headers, 'Cache-Control': 'public, max-age=3600' });
      return file ?? c.notFound();
    });
}

function openApiDocument(api: Api) {
  api.openAPIRegistry.registerComponent('securitySchemes', 'key', {
    type: 'http',
    scheme: 'bearer',
    description: 'A key of the server. Servers without keys accept every client.',
  });
  api.openAPIRegistry.register('RequestEvent', eventSchema);
  const document = api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Darkroom',
      version: '0.1.0',
      description: introduction,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    // Relative to the document: a proxy may add a path prefix.
    servers: [{ url: './' }],
    tags: [...tags],
    // The key is optional: a server may have no keys.
    security: [{}, { key: [] }],
  });
  markNullableFields(document);
  addExamples(document);
  return document;
}

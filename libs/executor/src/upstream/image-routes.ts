/** Fields of an OpenAI-compatible server's image routes, by its OpenAPI document: vLLM-omni and SGLang publish one. */
import { UpstreamError } from '../calls/backend-error.ts';
import { fieldOf } from './http/fields.ts';
import type { UpstreamHttp } from './http/upstream-http.ts';

const documentPath = '/openapi.json';
const contentTypes = ['application/json', 'multipart/form-data'];

export interface ImageRoutes {
  /** Fields of `/v1/images/generations`; empty without the route, or without a document. */
  readonly generations: ReadonlySet<string>;
  /** Fields of `/v1/images/edits`, likewise. */
  readonly edits: ReadonlySet<string>;
}

/** @throws UpstreamError `unavailable` if the server is busy; a network error. */
export async function readImageRoutes(http: UpstreamHttp, signal: AbortSignal): Promise<ImageRoutes> {
  const document = await http.get(documentPath, signal).catch((error: unknown) => {
    // The server has no such document, and some fail on unknown paths.
    if (error instanceof UpstreamError && !error.isBusy) return undefined;
    throw error;
  });
  return {
    generations: fieldsOf(document, '/v1/images/generations'),
    edits: fieldsOf(document, '/v1/images/edits'),
  };
}

function fieldsOf(document: unknown, path: string): ReadonlySet<string> {
  const content = at(document, ['paths', path, 'post', 'requestBody', 'content']);
  const schemas = contentTypes.map((type) => at(content, [type, 'schema']));
  const names = schemas.flatMap((schema) => Object.keys(fieldOf(resolve(document, schema), 'properties') ?? {}));
  return new Set(names);
}

/** Follows a reference such as `#/components/schemas/ImageGenerationRequest`. */
function resolve(document: unknown, schema: unknown): unknown {
  const reference = fieldOf(schema, '$ref');
  return typeof reference === 'string' ? at(document, reference.split('/').slice(1)) : schema;
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => fieldOf(inner, name), value);
}

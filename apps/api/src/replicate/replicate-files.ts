/** Files of Replicate's client: `replicate.files`, and uploads of a `Buffer` or `Blob` in an input. */
import { isoTime } from '@darkroom/core';
import { deleteFile, findFile, listFiles, type StoredFile } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { describeExternalAnswer as json } from '../compat/compat-document.ts';
import { readOwnFile } from '../files/read-own-file.ts';
import { fileIdOf, fileNotFound, saveFile } from '../files/save-file.ts';
import { answerFile } from '../http/answer-file.ts';
import type { ApiCall } from '../http/api-env.ts';
import { type ApiError, invalidField } from '../http/api-error.ts';
import { type Route, routesOf } from '../openapi/api-route.ts';
import { bodyTooSlow } from '../body/min-rate.ts';
import { readFormBody } from '../body/read-form-body.ts';
import { bodyTooLarge, invalidBody } from '../body/read-json-body.ts';
import { absoluteUrl, noStore } from '../http/public-url.ts';
import { countEarly } from '../submit/count-submitted.ts';
import { fileSchema } from '../openapi/api-schemas.ts';
import { pageOf, replicateError, route } from './replicate-schema.ts';

const maxMetadataBytes = 16_384;
const metadataExpected = `a JSON object of at most ${maxMetadataBytes} bytes`;
const metadataSchema = z.record(z.string(), z.unknown());

const path = '/replicate/v1/files';
const exampleUrl = `http://127.0.0.1:8080${path}/file-mig5x1a2-0123456789abcdefghijkl`;
const example = {
  id: 'file-mig5x1a2-0123456789abcdefghijkl',
  name: 'file-mig5x1a2-0123456789abcdefghijkl.png',
  content_type: 'image/png',
  size: 11_954,
  etag: 'e3b0c442',
  checksums: { sha256: 'e3b0c442' },
  metadata: {},
  created_at: '2026-11-21T01:40:46.000Z',
  expires_at: '2026-11-21T02:40:46.000Z',
  urls: { get: exampleUrl, download: `${exampleUrl}/download` },
};
const file = { schema: { type: 'string' as const, format: 'binary' } };
const image = { description: 'The image.', content: { 'image/png': file, 'image/jpeg': file, 'image/webp': file } };
const form = z.looseObject({ content: fileSchema, metadata: z.string().optional() });
const byId = `${path}/{id}`;
const refused = (description: string, error: ApiError) => json(description, replicateError(error, undefined).body);
const formRefusals = {
  400: refused('The body is not a form.', invalidBody('Content-Type has no boundary, expected the parts of a form')),
  408: refused('The file did not arrive in time.', bodyTooSlow()),
  413: refused('The file or the form is too large.', bodyTooLarge(67_108_864)),
  422: refused('A field is wrong. Nothing is stored.', invalidField('content', undefined, 'a file')),
};

const documents = {
  createFile: route(['post', path], 'createReplicateFile', 'Upload an image (Replicate: files.create)', {
    description:
      'Stores an image (PNG, JPEG or WebP) for requests of the same key, for as long as results are stored. `urls.get` can be the `image` or `mask` of any request of that key.',
    request: { body: { required: true, content: { 'multipart/form-data': { schema: form } } } },
    responses: { 201: json('Stored.', example), ...formRefusals },
  }),
  listFiles: route(['get', path], 'listReplicateFiles', 'List uploaded images (Replicate: files.list)', {
    responses: { 200: json('All files of your key.', pageOf([example])) },
  }),
  getFile: route(['get', byId], 'getReplicateFile', 'Get an uploaded image (Replicate: files.get)', {
    responses: { 200: json('The file.', example) },
  }),
  deleteFile: route(['delete', byId], 'deleteReplicateFile', 'Delete an uploaded image (Replicate: files.delete)', {
    responses: { 204: { description: 'Deleted.' } },
  }),
  download: route(['get', `${byId}/download`], 'downloadReplicateFile', 'Download an uploaded image', {
    responses: { 200: image, 206: image },
  }),
};

export const replicateFileRoutes: readonly Route[] = routesOf(documents, {
  async createFile(c, context) {
    const { config, images } = context;
    await countEarly(c, context);
    const { fields, uploads } = await readFormBody(c, {
      fileNames: ['content', 'metadata'],
      maxFileBytes: images.maxFileBytes,
      maxFieldBytes: config.maxBodyBytes,
      memory: images.files,
    });
    try {
      const data = uploads.get('content');
      if (data === undefined) throw invalidField('content', fields['content'], 'a file');
      // The client sends metadata as a file or as a field.
      const metadata = parseMetadata(uploads.get('metadata') ?? Buffer.from(fields['metadata'] ?? '{}'));
      const stored = await saveFile(context, c.get('owner'), { data, metadata, field: 'content' });
      return c.json(fileView(c, stored), 201, noStore);
    } finally {
      uploads.release();
    }
  },
  async listFiles(c, { withStore }) {
    const files = await withStore((store) => listFiles(store, c.get('owner')));
    return c.json(pageOf(files.map((stored) => fileView(c, stored))), 200, noStore);
  },
  async getFile(c, { withStore }) {
    const found = await withStore((store) => findFile(store, c.get('owner'), fileIdOf(c)));
    if (found === undefined) throw fileNotFound();
    return c.json(fileView(c, found), 200, noStore);
  },
  async deleteFile(c, { withStore }) {
    if (!(await withStore((store) => deleteFile(store, c.get('owner'), fileIdOf(c))))) throw fileNotFound();
    return c.body(null, 204);
  },
  async download(c, context) {
    const found = await readOwnFile(context, { owner: c.get('owner'), id: fileIdOf(c) });
    if (found === undefined) throw fileNotFound();
    return answerFile(c, { data: found.data, contentType: found.file.contentType, cacheControl: 'private, no-cache' });
  },
});

function parseMetadata(bytes: Uint8Array): Record<string, unknown> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, maxMetadataBytes + 1)).toString();
  try {
    if (bytes.byteLength <= maxMetadataBytes) return metadataSchema.parse(JSON.parse(text));
  } catch {
    // Rejected below.
  }
  throw invalidField('metadata', text, metadataExpected);
}

function fileView(c: ApiCall, { id, contentType, size, sha256, metadata, createdAtMs, expiresAtMs }: StoredFile) {
  const url = absoluteUrl(c, `${path}/${id}`);
  return {
    id,
    name: `${id}.${contentType.slice('image/'.length)}`,
    content_type: contentType,
    size,
    etag: sha256,
    checksums: { sha256 },
    metadata,
    created_at: isoTime(createdAtMs),
    expires_at: isoTime(expiresAtMs),
    urls: { get: url, download: `${url}/download` },
  };
}

/** API keys: list those of all sources, add and revoke those that are stored in Redis. */
import { randomBytes } from 'node:crypto';
import { cutText, fieldProblems, isoTime } from '@darkroom/core';
import { addKey, type AddKeyResult, readKeys, removeKey } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { hashKey, keyFields } from '../auth/api-keys.ts';
import { readJsonBody } from '../body/read-json-body.ts';
import type { ApiKey } from '../http/api-env.ts';
import { ApiError, invalidFields } from '../http/api-error.ts';
import { noStore } from '../http/public-url.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { audit, bodyErrors, maxBodyBytes, notAnAdmin } from './admin-action.ts';

const maxKeys = 1000;
/** 256 random bits: a plain SHA-256 of the key is enough, as no list of likely keys exists. */
const keyBytes = 32;

const newKeySchema = z
  .strictObject({
    name: keyFields.name.openapi({ description: 'Owner of the requests sent with the key.', example: 'carol' }),
    weight: keyFields.weight.nullish().openapi({ description: "The owner's share of the service; 1 by default." }),
    requests_per_minute: keyFields.requests_per_minute.nullish().openapi({ description: 'No limit by default.' }),
    open_requests: keyFields.open_requests.nullish().openapi({ description: 'No limit by default.' }),
  })
  .openapi('NewKey');

const shownFields = {
  name: z.string().openapi({ example: 'carol' }),
  weight: z.number(),
  requests_per_minute: z.int().nullable().openapi({ description: 'null: no limit.' }),
  open_requests: z.int().nullable().openapi({ description: 'null: no limit.' }),
};
const exampleKeyId = '5f0c1b2a3d4e6f70';
const addedFields = {
  id: z.string().openapi({ description: 'Revokes the key.', example: exampleKeyId }),
  created_at: z.iso.datetime(),
};
const keySchema = z
  .strictObject({
    ...shownFields,
    source: z.enum(['API_KEYS', 'ADMIN_KEYS', 'API_KEYS_FILE', 'redis']).openapi({
      description: 'Where the key is defined; only those of `redis` can be revoked here.',
    }),
    id: addedFields.id.nullable(),
    created_at: addedFields.created_at.nullable(),
  })
  .openapi('Key');
const keyListSchema = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(keySchema),
    are_required: z
      .boolean()
      .openapi({ description: 'False on a server that needs no keys; none can be added there.' }),
  })
  .openapi('KeyList');
const addedKeySchema = z
  .strictObject({
    ...shownFields,
    ...addedFields,
    key: z.string().openapi({ description: 'The key itself, which is shown only once.' }),
  })
  .openapi('AddedKey');

const list: Route = {
  method: 'get',
  path: '/admin/keys',
  operationId: 'listKeys',
  tag: 'Admin',
  summary: 'List the API keys',
  description: 'Names and limits of the keys of all sources, never the keys themselves.',
  responses: { ...commonErrors, 200: jsonAnswer('The current state.', keyListSchema), 403: notAnAdmin },
  async handle(c, { apiKeys, storedKeys, withStore }) {
    const { keys: stored } = await withStore(readKeys);
    const configured = [...apiKeys.values()].filter(({ isStored }) => isStored !== true);
    const data = [
      ...configured.map((key) => ({ ...limitsOf(key), source: sourceOf(key), id: null, created_at: null })),
      ...stored.map((key) => ({ ...limitsOf(key), source: 'redis', id: key.id, created_at: isoTime(key.createdAtMs) })),
    ];
    return c.json({ object: 'list', data, are_required: storedKeys.isUsed }, 200, noStore);
  },
};

const add: Route = {
  method: 'post',
  path: '/admin/keys',
  operationId: 'createKey',
  tag: 'Admin',
  summary: 'Add an API key',
  description:
    'Creates a random key and returns it once; Redis stores its SHA-256. Every replica accepts it within a second. A name may have several keys with the same limits, to replace one while the other still works.',
  request: { body: { required: true, content: { 'application/json': { schema: newKeySchema } } } },
  responses: {
    ...commonErrors,
    ...bodyErrors,
    201: jsonAnswer('The key was added.', addedKeySchema),
    403: notAnAdmin,
    409: describeErrorAnswer(
      'Keys are off (`keys_not_required`), the settings have the name (`name_in_use`), its other keys have other limits (`other_limits`), or too many keys are stored (`too_many_keys`).',
      keysNotRequired(),
    ),
  },
  async handle(c, context) {
    const body = await readJsonBody(c, maxBodyBytes);
    const { data, error } = newKeySchema.safeParse(body);
    if (error) throw invalidFields(fieldProblems(error.issues, { body, known: Object.keys(newKeySchema.shape) }));
    const { name, weight, requests_per_minute: requestsPerMinute = null, open_requests: openRequests = null } = data;
    if (!context.storedKeys.isUsed) throw keysNotRequired();
    const known = [...context.apiKeys.values()].find((each) => each.name === name && each.isStored !== true);
    if (known !== undefined) throw nameInUse(known);
    const key = `dk-${randomBytes(keyBytes).toString('base64url')}`;
    const fields = { name, sha256: hashKey(key), weight: weight ?? 1, requestsPerMinute, openRequests };
    const result = await context.withStore((store) => addKey(store, fields, maxKeys));
    const id = result.status === 'added' ? { key_id: result.key.id } : {};
    audit(c, context, { action: 'add key', owner: name, outcome: result.status, ...id });
    if (result.status !== 'added') throw notAdded(name, result);
    await context.storedKeys.runOnce();
    const created = isoTime(result.key.createdAtMs);
    return c.json({ ...limitsOf(fields), id: result.key.id, created_at: created, key }, 201, noStore);
  },
};

const revoke: Route = {
  method: 'delete',
  path: '/admin/keys/{id}',
  operationId: 'revokeKey',
  tag: 'Admin',
  summary: 'Revoke an added API key',
  description:
    'Every replica rejects the key within a second and ends its event streams. Requests that were sent with it continue. Keys of the settings and of `API_KEYS_FILE` are removed there.',
  responses: {
    ...commonErrors,
    200: jsonAnswer(
      'The key was revoked.',
      z.strictObject({ id: addedFields.id, status: z.literal('revoked') }).openapi('KeyRevoked'),
    ),
    403: notAnAdmin,
    404: describeErrorAnswer('No such key.', keyNotFound(exampleKeyId)),
  },
  async handle(c, context) {
    const id = c.req.param('id') ?? '';
    const isRevoked = await context.withStore((store) => removeKey(store, id));
    if (!isRevoked) throw keyNotFound(id);
    audit(c, context, { action: 'revoke key', key_id: id, outcome: 'revoked' });
    await context.storedKeys.runOnce();
    return c.json({ id, status: 'revoked' }, 200);
  },
};

export const adminKeyRoutes: readonly Route[] = [list, add, revoke];

function limitsOf(key: {
  name: string;
  weight: number;
  requestsPerMinute?: number | null | undefined;
  openRequests?: number | null | undefined;
}) {
  const { name, weight, requestsPerMinute = null, openRequests = null } = key;
  return { name, weight, requests_per_minute: requestsPerMinute, open_requests: openRequests };
}

/** Returns the setting that defines a key. */
function sourceOf({ isAdmin, isHashed }: ApiKey): 'ADMIN_KEYS' | 'API_KEYS_FILE' | 'API_KEYS' {
  if (isAdmin) return 'ADMIN_KEYS';
  return isHashed === true ? 'API_KEYS_FILE' : 'API_KEYS';
}

function keysNotRequired(): ApiError {
  const message =
    'This server needs no keys, expected API_KEYS or API_KEYS_FILE to be set: the first key would lock out all clients without one.';
  return new ApiError(409, 'keys_not_required', message);
}

function nameInUse(key: ApiKey): ApiError {
  const message = `name is ${JSON.stringify(key.name)}, expected a name that ${sourceOf(key)} does not have: its keys and limits are defined there.`;
  return new ApiError(409, 'name_in_use', message, { param: 'name' });
}

function notAdded(name: string, result: Exclude<AddKeyResult, { status: 'added' }>): ApiError {
  if (result.status === 'full')
    return new ApiError(409, 'too_many_keys', `${maxKeys} keys are stored, expected fewer: revoke one first.`);
  const { name: _name, ...limits } = limitsOf({ ...result.limits, name });
  const message = `name is ${JSON.stringify(name)}, whose other keys have the limits ${JSON.stringify(limits)}, expected the same limits: use them, or revoke those keys first.`;
  return new ApiError(409, 'other_limits', message, { param: 'name' });
}

function keyNotFound(id: string): ApiError {
  const message = `There is no added key ${cutText(id)}, expected the id of a key of GET /admin/keys.`;
  return new ApiError(404, 'key_not_found', message);
}

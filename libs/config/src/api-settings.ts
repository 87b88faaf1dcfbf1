import { readBy } from './setting.ts';
import { address, apiKeyPairs, modelId, nameList, oneOf, origins, path } from './setting-kinds.ts';
import { trueOrFalse, wholeNumber } from './setting-kinds.ts';

const api = readBy('api');

/** The part of the table of settings (settings.ts) that only the API reads. */
export const apiSettings = {
  port: api('PORT', wholeNumber(0, 65_535), {
    default: '8080',
    doc: 'The TCP port the API listens on; 0 takes any free one.',
  }),
  host: api('HOST', address, {
    default: '127.0.0.1',
    doc: 'The address the API listens on; `0.0.0.0` for all of them.',
  }),
  queueMaxLength: api('QUEUE_MAX_LENGTH', wholeNumber(1, 100_000, 'requests'), {
    default: '1000',
    doc: 'Waiting requests per model; past it the API answers 503 with `Retry-After` and stores nothing.',
  }),
  defaultModel: api('DEFAULT_MODEL', modelId, {
    absent: 'the first model that a worker serves',
    doc: 'The model of a request that names none.',
  }),
  unservedModels: api('UNSERVED_MODELS', oneOf(['accept', 'refuse']), {
    default: 'accept',
    doc: 'What happens to a request for a known model that no live worker serves right now.',
  }),
  maxBodyBytes: api('MAX_BODY_BYTES', wholeNumber(1024, 67_108_864, 'bytes'), {
    default: '1048576',
    doc: 'The largest request body; past it the API answers 413.',
  }),
  maxInputPixels: api('MAX_INPUT_PIXELS', wholeNumber(4096, 268_435_456, 'pixels'), {
    default: '16777216',
    doc: 'The most pixels of a picture that a request brings; a larger one is refused before it is decoded. Its file may have 4 bytes for each. A process keeps two such files in memory, or as many smaller ones, and decodes two pictures at once; others wait.',
  }),
  inputAllowPrivate: api('INPUT_ALLOW_PRIVATE', trueOrFalse, {
    default: 'false',
    doc: 'Whether pictures are fetched from private, loopback and other addresses that are not public, and over http, too. Whoever may submit can then look at pictures of its neighbours.',
  }),
  requestMaxBytes: api('REQUEST_MAX_BYTES', wholeNumber(0, 1_099_511_627_776, 'bytes'), {
    default: '268435456',
    doc: 'The most that one request may keep in Redis (previews, checkpoints, results); past it the API answers 400 and says which field to lower. 0 for no limit.',
  }),
  ownerMaxBytes: api('OWNER_MAX_BYTES', wholeNumber(0, 1_099_511_627_776, 'bytes'), {
    default: '2147483648',
    doc: 'The most that all requests of one API key may keep in Redis, of each model; past it the API answers 429. Without keys all clients are one. 0 for no limit.',
  }),
  requestTimeoutS: api('REQUEST_TIMEOUT_S', wholeNumber(1, 2_592_000, 's'), {
    default: '600',
    doc: 'The `timeout_s` of a request that gives none.',
  }),
  requestTimeoutMaxS: api('REQUEST_TIMEOUT_MAX_S', wholeNumber(1, 2_592_000, 's'), {
    default: '86400',
    doc: 'The largest `timeout_s` and `start_timeout_s` that a request may ask for.',
  }),
  apiKeys: api('API_KEYS', apiKeyPairs, {
    absent: 'none: open to all who reach it',
    doc: 'Who may use the API, as `Authorization: Bearer <key>`. A request can be seen by the name that sent it only.',
  }),
  apiKeysFile: api('API_KEYS_FILE', path, {
    doc: 'A JSON file of hashed keys with limits and weights, beside or in place of `API_KEYS`: [api-keys.md](api-keys.md).',
  }),
  adminKeys: api('ADMIN_KEYS', apiKeyPairs, {
    absent: 'none: no `/admin`, but on a server without any keys that listens on this machine only',
    doc: 'Who may administer (`/admin`), and use the API too: [admin.md](admin.md). Without `API_KEYS` all the rest stays open.',
  }),
  openAccess: api('OPEN_ACCESS', trueOrFalse, {
    default: 'false',
    doc: 'Whether the API may listen beyond this machine without keys, because something in front of it checks who comes. Names by which it is reached then go into `ALLOWED_HOSTS`.',
  }),
  allowedHosts: api('ALLOWED_HOSTS', nameList, {
    doc: 'Names in `Host` that an API without keys answers, besides `localhost`, `HOST` and IP addresses; `*` for any. Other names get 421: pages of other sites could come by them (DNS rebinding).',
  }),
  corsOrigins: api('CORS_ORIGINS', origins, {
    doc: 'Origins whose pages may use the API from a browser.',
  }),
  eventStreamsMax: api('EVENT_STREAMS_MAX', wholeNumber(1, 1_000_000), {
    default: '5000',
    doc: 'Open event streams of one key in one API process; past it 429. Without keys all readers are one. A stream takes about 20 KB.',
  }),
  eventStreamIdleS: api('EVENT_STREAM_IDLE_S', wholeNumber(1, 86_400, 's'), {
    default: '60',
    doc: 'How long an event stream waits for a reader that takes nothing of what was sent; then its connection is closed.',
  }),
  embedMetadata: api('EMBED_METADATA', trueOrFalse, {
    default: 'false',
    doc: 'The `metadata` of a request for pictures that says nothing of it: whether their files say how they were made, prompts included ([metadata.md](metadata.md)).',
  }),
  storePrompts: api('STORE_PROMPTS', trueOrFalse, {
    default: 'true',
    doc: 'Whether prompts stay in Redis as long as results do; `false` drops them when the request ends.',
  }),
};

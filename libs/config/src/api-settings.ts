import { readBy } from './setting.ts';
import { address, addressRanges, apiKeyPairs, modelId, nameList, oneOf, origins, path } from './setting-kinds.ts';
import { trueOrFalse, wholeNumber } from './setting-kinds.ts';

const api = readBy('api');

/** Settings read only by the API, part of the table in settings.ts. */
export const apiSettings = {
  port: api('PORT', wholeNumber(0, 65_535), {
    default: '8080',
    doc: 'TCP port of the API; 0 takes any free one.',
  }),
  host: api('HOST', address, {
    default: '127.0.0.1',
    doc: 'Address the API listens on; `0.0.0.0` for all. Other machines can then reach it, so keys are required. `npm start` makes a key if no setting names one: [install.md](install.md#keys).',
  }),
  queueMaxLength: api('QUEUE_MAX_LENGTH', wholeNumber(1, 100_000, 'requests'), {
    default: '1000',
    doc: 'Max. queued requests per model; beyond it the API answers 503 with `Retry-After` and stores nothing.',
  }),
  defaultModel: api('DEFAULT_MODEL', modelId, {
    absent: 'the first served model of the kind that matches the fields of the body',
    doc: 'Model of a request that names none.',
  }),
  unservedModels: api('UNSERVED_MODELS', oneOf(['accept', 'refuse']), {
    default: 'accept',
    doc: 'Whether to queue or refuse a request for a known model without live workers.',
  }),
  maxBodyBytes: api('MAX_BODY_BYTES', wholeNumber(1024, 67_108_864, 'bytes'), {
    default: '1048576',
    doc: 'Max. size of a request body; beyond it the API answers 413.',
  }),
  maxInputPixels: api('MAX_INPUT_PIXELS', wholeNumber(4096, 268_435_456, 'pixels'), {
    default: '16777216',
    doc: 'Max. pixels of an input image; larger ones are refused before decoding. Files may have up to 4 bytes per pixel. A process holds at most two such files in memory, or more smaller ones, and decodes one image at a time, which takes up to 12 bytes per pixel.',
  }),
  inputAllowPrivate: api('INPUT_ALLOW_PRIVATE', trueOrFalse, {
    default: 'false',
    doc: 'Whether input images may be fetched from private, loopback and other non-public addresses, and over http. Clients can then read images from servers in your network.',
  }),
  ownerMaxBytes: api('OWNER_MAX_BYTES', wholeNumber(0, 1_099_511_627_776, 'bytes'), {
    default: '2147483648',
    doc: 'Max. bytes that the requests of an API key may store per model (inputs, texts, previews, checkpoints, results). Beyond it the API answers 429, and open requests fail with `too_many_bytes`. Without keys all clients count as one. 0 for no limit.',
  }),
  maxAttempts: api('MAX_ATTEMPTS', wholeNumber(2, 100, 'deliveries'), {
    default: '3',
    doc: 'Max. deliveries of a request to workers before it fails, because it is likely to crash them. A delivery in which it made progress does not count. Stored with the request at admission, so all processes agree.',
  }),
  requestTimeoutS: api('REQUEST_TIMEOUT_S', wholeNumber(1, 86_400, 's'), {
    default: '600',
    doc: 'Default `timeout_s` of a request; the maximum is a day.',
  }),
  apiKeys: api('API_KEYS', apiKeyPairs, {
    absent: 'none: open to every client that reaches it',
    doc: 'Keys for the API, sent as `Authorization: Bearer <key>`. A request is visible only to the name that sent it.',
  }),
  apiKeysFile: api('API_KEYS_FILE', path, {
    doc: 'A JSON file of hashed keys with limits and weights, in addition to or instead of `API_KEYS`: [api-keys.md](api-keys.md).',
  }),
  adminKeys: api('ADMIN_KEYS', apiKeyPairs, {
    absent: 'none: `/admin` works only on a server without any keys that listens on this machine only',
    doc: 'Keys for `/admin` and the API: [admin.md](admin.md). Without `API_KEYS`, the API itself stays open.',
  }),
  openAccess: api('OPEN_ACCESS', trueOrFalse, {
    default: 'false',
    doc: 'Whether the API may listen beyond this machine without keys, because a proxy in front of it authenticates clients. List its host names in `ALLOWED_HOSTS`.',
  }),
  allowedHosts: api('ALLOWED_HOSTS', nameList, {
    doc: 'Host names that an API without keys answers, in addition to `localhost`, `HOST` and IP addresses; `*` for any. Other names get 421, which prevents DNS rebinding.',
  }),
  trustedProxies: api('TRUSTED_PROXIES', addressRanges, {
    default: '127.0.0.0/8,::1',
    doc: 'Proxies whose `X-Forwarded-Prefix` is trusted: the path under which they serve the API, and which they strip. `PUBLIC_URL` takes precedence.',
  }),
  corsOrigins: api('CORS_ORIGINS', origins, {
    doc: 'Origins whose pages may use the API from a browser. Without keys, writes from other origins get 403.',
  }),
  storePrompts: api('STORE_PROMPTS', trueOrFalse, {
    default: 'true',
    doc: 'Whether prompts stay in Redis as long as results; `false` deletes them when the request ends.',
  }),
};

import { z } from '@hono/zod-openapi';

type Row = readonly [status: number, description: string, code: string, message: string];

const common: readonly Row[] = [
  [401, 'No key, or none of this server.', 'missing_api_key', 'The API key is missing.'],
  [404, 'No such model or request.', 'model_not_found', 'model "sdxl" is not here, expected one of emoji-sd'],
  [421, 'Not a name of this server (only without keys).', 'wrong_host', 'Host is "example.org", expected localhost.'],
  [429, 'The key has used up what it may.', 'rate_limit_exceeded', 'This key may send 60 requests a minute.'],
  [500, 'A fault on our side; the id is in the log too.', 'internal', 'Something went wrong on our side.'],
  [
    503,
    'Redis is away, or too many requests wait. Nothing is stored.',
    'overloaded',
    'Service overloaded, try again later.',
  ],
];
const refusals: readonly Row[] = [
  [400, 'The body is not JSON.', 'invalid_body', 'the body is empty, expected a JSON object'],
  [413, 'The body is too large.', 'body_too_large', 'the body has more than 1048576 bytes'],
  [415, 'No application/json.', 'unsupported_media_type', 'Content-Type is missing, expected application/json'],
];

/** The description of an answer in the shape of another API. */
export function jsonAnswer(description: string, example: object) {
  return { description, content: { 'application/json': { schema: z.looseObject({}), example } } };
}

/** The errors of routes that speak as another API: those of all, and those of submissions before anything is stored. */
export function foreignErrors(shapeOf: (status: number, code: string, message: string) => object) {
  const described = (rows: readonly Row[]) =>
    Object.fromEntries(
      rows.map(([status, description, code, message]) => [
        status,
        jsonAnswer(description, shapeOf(status, code, message)),
      ]),
    );
  return { common: described(common), refusals: described(refusals) };
}

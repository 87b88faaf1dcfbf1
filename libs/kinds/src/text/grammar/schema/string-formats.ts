const date =
  '[12]\\d{3}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))';
const time = '([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)';
const host = '[a-z0-9]{1,30}(-[a-z0-9]{1,20})?(\\.[a-z0-9]{1,30}(-[a-z0-9]{1,20})?){0,3}';
const octet = '(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';

/**
 * Patterns for `format`. Each matches a subset of its RFC: 3339, 5321, 1123, 2673, 4291, 3986 or 9562. Formats that are
 * not listed do not constrain the text.
 */
export const stringFormats: ReadonlyMap<string, string> = new Map([
  ['date', date],
  ['time', time],
  ['date-time', `${date}T${time}`],
  ['duration', 'P(\\d{1,4}W|\\d{1,6}D(T\\d{1,6}[HMS])?|T\\d{1,6}[HMS])'],
  ['email', '[A-Za-z0-9]{1,20}([._+-][A-Za-z0-9]{1,20}){0,2}@([A-Za-z0-9]{1,30}\\.){1,4}[A-Za-z]{2,10}'],
  ['hostname', host],
  ['ipv4', `(${octet}\\.){3}${octet}`],
  ['ipv6', '([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}'],
  ['uri', `https?://${host}(:[1-9]\\d{0,3})?(/[A-Za-z0-9._~-]*)*([?][A-Za-z0-9._~=&-]*)?(#[A-Za-z0-9._~-]*)?`],
  ['uuid', '[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'],
]);

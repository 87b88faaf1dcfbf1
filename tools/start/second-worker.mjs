/** Settings that all workers must share. */
const sharedVariables = [
  'REDIS_PREFIX',
  'BYTES_URL',
  'RESULT_TTL_S',
  'MODEL_DIR',
  'MODEL_DIRS',
  'MODEL_ID',
  'MODEL_DTYPE',
  'EXECUTOR',
  'MODULE',
  'PYTHON',
  'UPSTREAM_URL',
  'UPSTREAM_API',
  'JUDGE',
  'SAFETY_CHECKER',
];
/** Shared settings that hold secrets, which are not shown. */
const secretVariables = ['UPSTREAM_KEY', 'REDIS_SENTINEL_PASSWORD'];

/**
 * Returns the command that starts another worker on the same Redis. Hides a REDIS_URL of the user: it may hold a
 * password.
 *
 * @param redis as provideRedis returns it: with a `part` if it is private
 */
export function secondWorker({ url, part }, environment) {
  const isSet = (name) => Boolean(environment[name]?.trim());
  const settings = sharedVariables.filter(isSet).map((name) => `${name}=${shellWord(environment[name])}`);
  const hidden = secretVariables.filter(isSet);
  if (part === undefined) hidden.unshift('REDIS_URL');
  else settings.unshift(`REDIS_URL=${shellWord(url)}`);
  const command = [...settings, 'node apps/worker/dist/main.js'].join(' ');
  return hidden.length === 0 ? command : `${command}   # with the same ${hidden.join(' and ')}`;
}

/** Quotes a word for a shell if necessary. */
function shellWord(text) {
  return /^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Seconds of `Retry-After`, which is a number or a date; undefined without a usable one. */
export function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get('retry-after');
  if (text === null || text.trim() === '') return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const untilMs = Date.parse(text) - Date.now();
  return Number.isNaN(untilMs) ? undefined : Math.max(0, Math.ceil(untilMs / 1000));
}

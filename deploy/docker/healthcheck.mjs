// HEALTHCHECK of every image: healthy if /ready returns 200. Prints the reason if not, for `docker inspect`.
const url = `http://127.0.0.1:${process.env.METRICS_PORT}/ready`;
try {
  const response = await fetch(url, { signal: AbortSignal.timeout(4000) });
  console.log(`${url}: ${response.status} ${(await response.text()).trim()}`);
  process.exitCode = response.ok ? 0 : 1;
} catch (error) {
  console.log(`${url}: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}

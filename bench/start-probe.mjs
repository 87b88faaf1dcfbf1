// Loaded before anything else into every Node process of `npm start` (start.bench.ts): tells when it began, and when its
// modules were there, which is when it begins to listen for SIGTERM.
import { appendFileSync } from 'node:fs';

function tell(phase, at) {
  const [, script = ''] = process.argv;
  appendFileSync(process.env.START_PROBE_FILE, `${JSON.stringify({ pid: process.pid, script, phase, at })}\n`);
}

const now = () => performance.timeOrigin + performance.now();
tell('process', performance.timeOrigin);
process.on('newListener', function listens(event) {
  if (event !== 'SIGTERM') return;
  process.off('newListener', listens);
  tell('modules', now());
});

// Preloaded into every Node process of `npm start` (start.bench.ts): records when the process started, and when its
// modules were loaded, which is when it adds its SIGTERM listener.
import { appendFileSync } from 'node:fs';

function record(phase, at) {
  const [, script = ''] = process.argv;
  appendFileSync(process.env.START_PROBE_FILE, `${JSON.stringify({ pid: process.pid, script, phase, at })}\n`);
}

const now = () => performance.timeOrigin + performance.now();
record('process', performance.timeOrigin);
process.on('newListener', function listens(event) {
  if (event !== 'SIGTERM') return;
  process.off('newListener', listens);
  record('modules', now());
});

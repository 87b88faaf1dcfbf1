// A janitor that does nothing, run by run-main.test.ts as a process of its own. BEHAVIOUR says how it misbehaves.
import { BaseService, runMain } from '@darkroom/service';

const behaviour = process.env.BEHAVIOUR;

class App extends BaseService {
  async onStart() {
    if (behaviour === 'fail-to-start') throw new Error('no such luck');
    if (behaviour === 'throw-later') setImmediate(() => { throw new Error('nobody caught this'); });
    if (behaviour === 'reject-later') setImmediate(() => { void Promise.reject(new Error('nobody caught this')); });
  }

  async onStop() {
    console.log('stop was called');
    if (behaviour === 'never-stop' || behaviour === 'stop-slowly') await new Promise(() => {});
  }
}

await runMain('janitor', ({ log, config }) => {
  log.info({ interval: config.sweepIntervalMs }, 'built');
  return new App();
}, behaviour === 'stop-slowly' ? { stopTimeoutMs: 1 } : {});

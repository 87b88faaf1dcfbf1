// A janitor without work, run by run-main.test.ts in its own process. BEHAVIOUR selects how it misbehaves.
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

// With SHARED, a batch-former in the same process starts and stops later.
class Later extends App {
  async onStart() {
    await new Promise(setImmediate);
    console.log('the former has started');
  }

  async onStop() {
    await new Promise(setImmediate);
    console.log('the former has stopped');
  }
}

const mains = [
  runMain('janitor', ({ log, config }) => {
    log.info({ ttl: config.workerTtlMs }, 'built');
    return new App();
  }, behaviour === 'stop-slowly' ? { stopTimeoutMs: 1 } : {}),
];
if (process.env.SHARED) mains.push(runMain('batch-former', () => new Later()));
await Promise.all(mains);

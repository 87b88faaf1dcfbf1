import { Metrics } from '@darkroom/service';
import { silentLogger } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import type { EngineState } from '../engine/engine-life.ts';
import { EngineMeters } from '../meters/engine-meters.ts';
import { FileWatch } from './file-watch.ts';

it('reports replaced model files once, in the log, the metric and the worker info, until they are loaded', async () => {
  const log = silentLogger();
  const warnings = vi.spyOn(log, 'warn');
  const metrics = new Metrics({ app: 'worker', log });
  const engine = { state: 'ready' as EngineState };
  let isNew = true;
  const files = { digest: '', changed: ['a.json', 'b.onnx', 'c.onnx', 'd.onnx'], check: async () => isNew };
  const register = vi.fn<() => Promise<void>>();
  const watch = new FileWatch({
    model: 'tiny',
    engine,
    meters: new EngineMeters({ metrics, model: 'tiny', capacity: 1, timeoutMs: 1, maxGapMs: 1 }),
    info: { host: 'box' },
    files,
    register,
    log,
  });
  const gauge = async () => /darkroom_model_files_changed\{.*\} (?<count>\d+)/.exec(await metrics.expose())?.[1];
  await watch.checkOnce();
  isNew = false;
  await watch.checkOnce();
  expect(warnings.mock.calls.map(([facts]) => facts)).toEqual([{ model: 'tiny', files: files.changed }]);
  expect([register.mock.calls.length, await gauge()]).toEqual([1, '4']);
  expect(watch.info).toEqual({ host: 'box', changedFiles: 'a.json, b.onnx, c.onnx and 1 more' });
  engine.state = 'asleep';
  await watch.checkOnce();
  expect([watch.info, await gauge()]).toEqual([{ host: 'box' }, '0']);
});

import { Metrics } from '@darkroom/service';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import type { EngineLife, EngineState } from '../engine/engine-life.ts';
import { EngineMeters } from '../meters/engine-meters.ts';
import { HotSwap } from './hot-swap.ts';

it('says once what was replaced, to all who ask, until that is loaded', async () => {
  const log = silentLogger();
  const said = vi.spyOn(log, 'warn');
  const metrics = new Metrics({ app: 'worker', log });
  const engine = { state: 'ready' as EngineState };
  let isNew = true;
  const files = { digest: '', changed: ['a.json', 'b.onnx', 'c.onnx', 'd.onnx'], look: async () => isNew };
  const register = vi.fn<() => Promise<void>>();
  const swap = new HotSwap({
    store: openTestStore(),
    identity: { model: 'tiny', workerId: 'w1', incarnation: 'first' },
    engine: engine as EngineLife,
    meters: new EngineMeters({ metrics, model: 'tiny', capacity: 1, timeoutMs: 1, longestPauseMs: 1 }),
    info: { host: 'box' },
    heartbeatMs: 1,
    files,
    register,
    log,
  });
  const gauge = async () => /darkroom_model_files_changed\{.*\} (?<count>\d+)/.exec(await metrics.expose())?.[1];
  await swap.checkOnce();
  isNew = false;
  await swap.checkOnce();
  expect(said.mock.calls.map(([facts]) => facts)).toEqual([{ model: 'tiny', files: files.changed }]);
  expect([register.mock.calls.length, await gauge()]).toEqual([1, '4']);
  expect(swap.info).toEqual({ host: 'box', changedFiles: 'a.json, b.onnx, c.onnx and 1 more' });
  engine.state = 'asleep';
  await swap.checkOnce();
  expect([swap.info, await gauge()]).toEqual([{ host: 'box' }, '0']);
});

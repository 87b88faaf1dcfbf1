import type { PipelineComponent } from '@darkroom/core';
import { sizeText } from '../command/number-text.ts';
import { table } from '../command/table.ts';
import type { CheckMeasurement } from './measured.ts';

/** Formats measurements as a table. */
export function measurementTable(done: readonly (readonly [what: string, measured: CheckMeasurement])[]): string {
  const rows = done.map(([what, { ms, bytes, peakBytes }]) => [
    what,
    timeText(ms),
    sizeText(bytes),
    sizeText(peakBytes),
  ]);
  return table([['done', 'time', 'memory after it', 'peak until then'], ...rows]);
}

/** Formats the device of each part of a model, with the reasons for refused devices. */
export function componentTable(components: readonly PipelineComponent[]): string {
  const rows = components.map(({ part, device, refusals, nodes = {}, remark }) => {
    const counts = Object.entries(nodes).map(([name, count]) => `${count} nodes on ${name}`);
    const reasons = refusals.map(({ device: refused, reason }) => `not on ${refused}: ${reason}`);
    return [part, device, [...counts, ...reasons, ...(remark === undefined ? [] : [remark])].join('; ')];
  });
  return table([['part', 'runs on', ''], ...rows]);
}

function timeText(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

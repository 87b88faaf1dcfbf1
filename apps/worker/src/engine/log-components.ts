import type { Device, PipelineComponent } from '@darkroom/core';
import type { Logger } from '@darkroom/service';

/** Says in the log what each part of the model runs on, and aloud where that is not what was asked for. */
export function logComponents(
  components: readonly PipelineComponent[],
  { log, asked }: { log: Logger; asked: readonly Device[] },
): void {
  for (const { part, device, refusals, nodes, remark } of components) {
    for (const { device: refused, reason } of refusals)
      log.warn({ part, device: refused, reason }, 'does not run on a device asked for');
    log.info({ part, device, asked, ...(nodes === undefined ? {} : { nodes }) }, 'runs on');
    if (remark !== undefined) log.warn({ part, remark }, 'cannot do all that is asked for');
  }
}

/** What a model runs on, each device once. */
export function devicesOf(components: readonly PipelineComponent[]): Device[] {
  return [...new Set(components.map(({ device }) => device))];
}

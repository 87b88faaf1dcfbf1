import type { Device, ModelCard, PipelineComponent } from '@darkroom/core';
import type { Logger } from '@darkroom/service';

/** A loaded model and its parts. */
export interface Loaded {
  readonly components: readonly PipelineComponent[];
  readonly card: ModelCard;
}

/**
 * Logs the device of each part. Warns about refused devices, and if outputs depend on what shares the batch.
 *
 * @returns the distinct devices.
 */
export function logLoaded(
  { components, card }: Loaded,
  { log, requested }: { log: Logger; requested: readonly Device[] },
): Device[] {
  for (const { part, device, refusals, nodes, remark } of components) {
    for (const { device: refused, reason } of refusals) log.warn({ part, device: refused, reason }, 'device refused');
    log.info({ part, device, requested, ...(nodes === undefined ? {} : { nodes }) }, 'part loaded');
    if (remark !== undefined) log.warn({ part, remark }, 'part loaded with limits');
  }
  const { deterministic } = card;
  if (deterministic?.is === false) {
    const { reason } = deterministic;
    log.warn({ model: card.id, reason }, 'outputs depend on the batch: the same request may get a different text');
  }
  return [...new Set(components.map(({ device }) => device))];
}

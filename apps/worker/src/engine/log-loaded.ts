import type { Device, ModelCard, PipelineComponent } from '@darkroom/core';
import type { TextCard } from '@darkroom/kinds';
import type { Logger } from '@darkroom/service';

/** What an engine has loaded. */
export interface Loaded {
  readonly components: readonly PipelineComponent[];
  readonly card: ModelCard;
}

/**
 * Logs what each part of the model runs on, aloud where that is not what was asked for, and aloud that the rows of a model of
 * text may not have the same bytes in any company.
 *
 * @returns each device once.
 */
export function logLoaded(
  { components, card }: Loaded,
  { log, asked }: { log: Logger; asked: readonly Device[] },
): Device[] {
  for (const { part, device, refusals, nodes, remark } of components) {
    for (const { device: refused, reason } of refusals)
      log.warn({ part, device: refused, reason }, 'does not run on a device asked for');
    log.info({ part, device, asked, ...(nodes === undefined ? {} : { nodes }) }, 'runs on');
    if (remark !== undefined) log.warn({ part, remark }, 'cannot do all that is asked for');
  }
  const { deterministic } = card as Partial<TextCard>;
  if (deterministic?.is === false) {
    const { reason } = deterministic;
    log.warn({ model: card.id, reason }, 'the same request may get another text in other company');
  }
  return [...new Set(components.map(({ device }) => device))];
}

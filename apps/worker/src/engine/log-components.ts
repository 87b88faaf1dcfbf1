import type { Device, ModelCard, PipelineComponent } from '@darkroom/core';
import type { TextCard } from '@darkroom/kinds';
import type { Logger } from '@darkroom/service';

/** Logs what each part of the model runs on, aloud where that is not what was asked for. @returns each device once. */
export function logComponents(
  components: readonly PipelineComponent[],
  { log, asked }: { log: Logger; asked: readonly Device[] },
): Device[] {
  for (const { part, device, refusals, nodes, remark } of components) {
    for (const { device: refused, reason } of refusals)
      log.warn({ part, device: refused, reason }, 'does not run on a device asked for');
    log.info({ part, device, asked, ...(nodes === undefined ? {} : { nodes }) }, 'runs on');
    if (remark !== undefined) log.warn({ part, remark }, 'cannot do all that is asked for');
  }
  return [...new Set(components.map(({ device }) => device))];
}

/** Logs aloud why a model of text is listed as one whose rows may not have the same bytes in any company. */
export function logDoubt(card: ModelCard, log: Logger): void {
  const { deterministic } = card as Partial<TextCard>;
  if (deterministic?.is !== false) return;
  log.warn({ model: card.id, reason: deterministic.reason }, 'the same request may get another text in other company');
}

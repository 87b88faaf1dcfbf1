import type { WriteOutcome } from '@darkroom/store';

/** Why a worker takes a request out of its engine; the last ones are outcomes of a refused write. */
export type DropReason = 'reaped' | 'canceled' | Extract<WriteOutcome, 'canceling' | 'lost' | 'ended'>;

/** Reasons that mean that another worker has the request by now, as metric labels. */
export const lossLabels: Readonly<Partial<Record<DropReason, string>>> = { reaped: 'reaped', lost: 'refused' };

/** Returns true if another worker has the request by now. */
export function isLoss(reason: DropReason): boolean {
  return lossLabels[reason] !== undefined;
}

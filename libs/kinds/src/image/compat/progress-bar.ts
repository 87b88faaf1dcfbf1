const barWidth = 20;

/** Returns a log line like diffusers' tqdm bar, which clients parse for progress: ` 42%|████████            | 5/12`. */
export function progressBar(step: number, totalSteps: number): string {
  const share = totalSteps > 0 ? Math.min(1, step / totalSteps) : 0;
  const percent = String(Math.floor(share * 100)).padStart(3);
  return `${percent}%|${'█'.repeat(Math.floor(share * barWidth)).padEnd(barWidth)}| ${step}/${totalSteps}`;
}

export function secondsBetween(fromMs: number | undefined, toMs: number | undefined): number | undefined {
  return fromMs === undefined || toMs === undefined ? undefined : (toMs - fromMs) / 1000;
}

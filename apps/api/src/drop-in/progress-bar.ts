const width = 20;

/** A line of a log as diffusers prints it (tqdm's), which clients read progress from: ` 42%|████████            | 5/12`. */
export function progressBar(step: number, totalSteps: number): string {
  const share = totalSteps > 0 ? Math.min(1, step / totalSteps) : 0;
  const percent = String(Math.floor(share * 100)).padStart(3);
  return `${percent}%|${'█'.repeat(Math.floor(share * width)).padEnd(width)}| ${step}/${totalSteps}`;
}

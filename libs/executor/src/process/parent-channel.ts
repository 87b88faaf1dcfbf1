/** What every process that an executor forks owes the one that forked it: ends when that is gone, and by nothing else. */
export function obeyParent(): void {
  // The parent decides when this ends. A Ctrl-C reaches the whole process group, and must not cost the last checkpoints.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  // The kernel closes channels however the parent dies, kill -9 included.
  process.on('disconnect', () => process.exit(0));
}

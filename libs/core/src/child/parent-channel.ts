const send = process.send?.bind(process);

/** Sends a message to the parent process. Resolves when the kernel has taken it, or the parent has exited. */
export function sendToParent(message: object): Promise<void> {
  return new Promise((resolve) => void send?.(message, undefined, undefined, () => resolve()));
}

/**
 * Makes a child process end when its parent has gone, ignore signals, and handle messages; a rejection ends it. Other
 * code of the process cannot use the channel.
 */
export function obeyParent(handle: (message: never) => Promise<void>): void {
  delete process.send;
  // The parent decides when this process ends. A Ctrl-C reaches the whole group and must not lose the last checkpoints.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  // The kernel closes the channel however the parent dies, kill -9 included.
  process.on('disconnect', () => process.exit(0));
  process.on('message', (message) => void handle(message as never));
}

/** Sends a message to the process that started this one, and waits until it is out. */
export function send(message: object): Promise<void> {
  return new Promise((resolve) => {
    process.send!(message, undefined, undefined, () => resolve());
  });
}

/** The last message of a process that could not do what it was to do. */
export interface Failed {
  readonly failure: string;
}

/** Does what the first message asks for, and ends this process; a failure is sent as `Failed`. */
export function serveRequest(work: (request: never) => Promise<void>): void {
  process.on('disconnect', () => process.exit(1));
  process.once('message', (request: unknown) => {
    // What the one that forked this program sends is what the program is for.
    work(request as never).then(
      () => process.exit(0),
      async (error: unknown) => {
        await send({ failure: describe(error) } satisfies Failed);
        process.exit(1);
      },
    );
  });
}

/** With ONNX Runtime's own words, which are the cause. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${describe(error.cause)})` : error.message;
}

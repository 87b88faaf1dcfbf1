import { sendToParent } from '@darkroom/core';

/** Last message of a program that failed. */
export interface Failed {
  readonly failure: string;
}

/** Runs the request in the first message and exits; sends a failure as `Failed`. */
export function serveRequest(work: (request: never) => Promise<void>): void {
  process.on('disconnect', () => process.exit(1));
  process.once('message', (request: unknown) => {
    // Trusted: the parent starts this program with a matching request.
    work(request as never).then(
      () => process.exit(0),
      async (error: unknown) => {
        await sendToParent({ failure: describe(error) } satisfies Failed);
        process.exit(1);
      },
    );
  });
}

/** Appends the messages of causes, such as ONNX Runtime's own. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${describe(error.cause)})` : error.message;
}

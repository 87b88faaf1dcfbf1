/** Prints a message of the launcher, with a prefix that separates it from the output of the parts. */
export function say(message) {
  console.log(`darkroom: ${message}`);
}

/** An error that the user must fix; printed without a stack. */
export class SetupError extends Error {}

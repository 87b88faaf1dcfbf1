/** What the launcher itself has to say, told apart from the output of the parts. */
export function say(message) {
  console.log(`darkroom: ${message}`);
}

/** Something the user has to put right; shown without a stack. */
export class SetupError extends Error {}

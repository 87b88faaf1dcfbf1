/** An error for the user, shown without a stack. */
export class CommandError extends Error {}

/** Something that the user has to know or put right; shown without a stack. */
export class CommandError extends Error {}

/** How long answers under way may take to finish when the process stops. */
export const drainMs = 5000;
/** How long an answer that waits for a picture goes on waiting then: what is left is for saying that it does not come. */
export const drainGraceMs = 4000;

/** Resolves after so long, and not before the events that are due already. */
export const wait = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis));

/** Resolves after so many milliseconds, and not before the events that are already due. */
export const wait = (millis: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, millis));

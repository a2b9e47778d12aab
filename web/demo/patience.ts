/** Questions to the browser that it may refuse, or never answer. */

const ANSWER_MILLIS = 3000;

/** Returns the answer, or undefined if it is refused or takes longer than three seconds. */
export const answered = <T>(ask: () => Promise<T>): Promise<T | undefined> =>
  Promise.race([
    ask().catch(() => undefined),
    new Promise<undefined>((late) => setTimeout(() => late(undefined), ANSWER_MILLIS)),
  ]);

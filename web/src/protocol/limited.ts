/** Waiting with a time limit. */

/**
 * Returns the result of `work`, or after `millis` milliseconds that of `late`, which may throw. The work itself continues, and an error that it
 * throws later is ignored.
 */
export function limited<T>(work: PromiseLike<T>, millis: number, late: () => T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = new Promise<void>((resolve) => (timer = setTimeout(resolve, millis)));
  return Promise.race([Promise.resolve(work), end.then(late)]).finally(() => clearTimeout(timer));
}

/** Waiting with a limit. */

/** What `work` gives, or after so many milliseconds what `late` gives or throws. The work itself goes on, and its end is nobody's fault. */
export function limited<T>(work: PromiseLike<T>, millis: number, late: () => T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = new Promise<void>((resolve) => (timer = setTimeout(resolve, millis)));
  return Promise.race([Promise.resolve(work), end.then(late)]).finally(() => clearTimeout(timer));
}

/** Keeps the screen on while training; the lock is released whenever the page is hidden, and requested again. */
export function keepAwake(): () => void {
  let sentinel: WakeLockSentinel | undefined;
  let wanted = true;
  const ask = (): void => {
    if (!wanted || document.hidden || !('wakeLock' in navigator)) return;
    navigator.wakeLock.request('screen').then(
      (lock) => {
        sentinel = lock;
        if (!wanted) void lock.release();
      },
      // Without the lock (power saving, policy) training still works.
      () => undefined,
    );
  };
  document.addEventListener('visibilitychange', ask);
  ask();
  return () => {
    wanted = false;
    document.removeEventListener('visibilitychange', ask);
    void sentinel?.release();
  };
}

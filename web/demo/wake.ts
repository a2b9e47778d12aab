/** Keeps the screen on while training; the lock ends with every hiding and is asked for again. */
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
      // A refusal (power saving, policy) costs comfort, not training.
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

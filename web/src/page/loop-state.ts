/** The states of a run on the page, and what each call makes of them. */

/**
 * `pausing`, `stopping` and `leaving` (the iterator was left) last until the worker has ended its current step, `ended` until the iterator has given its
 * last event; `closed` is the end of the trainer.
 */
export type LoopState =
  'idle' | 'running' | 'pausing' | 'paused' | 'stopping' | 'ended' | 'leaving' | 'closed';
/** Calls of the user, `halted` when the worker makes no more steps, `ended` when the run is over, and `leave` at the end of its iterator. */
export type LoopEvent =
  'run' | 'pause' | 'resume' | 'stop' | 'halted' | 'ended' | 'leave' | 'close';

/** The state after each event; an event that is missing here changes nothing. */
const AFTER: Readonly<Record<LoopState, Partial<Record<LoopEvent, LoopState>>>> = {
  idle: { run: 'running' },
  running: { pause: 'pausing', stop: 'stopping', ended: 'ended', leave: 'leaving' },
  pausing: {
    resume: 'running',
    halted: 'paused',
    stop: 'stopping',
    ended: 'ended',
    leave: 'leaving',
  },
  paused: { resume: 'running', stop: 'stopping', ended: 'ended', leave: 'leaving' },
  stopping: { ended: 'ended', leave: 'leaving' },
  ended: { leave: 'idle' },
  leaving: { ended: 'idle' },
  closed: {},
};

/** @internal Returns the state that follows an event. */
export const after = (state: LoopState, event: LoopEvent): LoopState =>
  event === 'close' ? 'closed' : (AFTER[state][event] ?? state);

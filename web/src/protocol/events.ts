/** The events of a run. */
import { evaluationFields, stepFields } from './generated/reports.js';
import type { EvalReport, StepReport } from './generated/reports.js';
import { count, number, oneOf, text, variant } from './parse.js';
import type { Parser } from './parse.js';

/** Reason why a text ended: a token that ends one, the number of tokens, or the model's context. */
export type SampleEnd = 'stop' | 'length' | 'context';
export const sampleEnd: Parser<SampleEnd> = oneOf('stop', 'length', 'context');

/** A finished step. */
export interface StepEvent extends StepReport {
  /** Type of the event. */
  type: 'step';
}
/** A text that was generated during the run. */
export interface SampleEvent {
  /** Type of the event. */
  type: 'sample';
  /** Number of steps before it. */
  step: number;
  /** Text that the model was given. */
  prompt: string;
  /** Text that it added. */
  text: string;
  /** Reason why the text ended. */
  end: SampleEnd;
}
/** An evaluation on the data that are kept for it. */
export interface EvalEvent extends EvalReport {
  /** Type of the event. */
  type: 'eval';
  /** Number of steps before it. */
  step: number;
}
/** A checkpoint that was saved. */
export interface CheckpointEvent {
  /** Type of the event. */
  type: 'checkpoint';
  /** Number of steps in it. */
  step: number;
  /** Number of the checkpoint in its run. */
  generation: number;
  /** Number of bytes that were written. */
  bytes: number;
  /** Duration of the save, in seconds. */
  secs: number;
}
/** Something that the user should know, although the run continues. */
export interface WarningEvent {
  /** Type of the event. */
  type: 'warning';
  /** Number of steps before it. */
  step: number;
  /** Dotted code. */
  code: string;
  /** The warning as a sentence. */
  message: string;
}
/** State of a trainer in a word. */
export type TrainerState =
  'ready' | 'running' | 'paused' | 'stopped' | 'done' | 'recovering' | 'failed';
/** A change of the trainer's state. */
export interface StateEvent {
  /** Type of the event. */
  type: 'state';
  /** The new state. */
  state: TrainerState;
  /** The last step; with `recovering`, the step from which the run continues. */
  step: number;
}
/** History stored with a run's state: steps, evaluations and samples. */
export type HistoryEntry = StepEvent | SampleEvent | EvalEvent;
/** Events that `run` yields and the trainer dispatches. */
export type TrainerEvent = HistoryEntry | CheckpointEvent | WarningEvent | StateEvent;

const historyFields = {
  step: stepFields,
  sample: { step: count, prompt: text, text, end: sampleEnd },
  eval: { step: count, ...evaluationFields },
};
export const historyEntry: Parser<HistoryEntry> = variant('type', historyFields);

export const trainerEvent: Parser<TrainerEvent> = variant('type', {
  ...historyFields,
  checkpoint: { step: count, generation: count, bytes: count, secs: number },
  warning: { step: count, code: text, message: text },
  state: {
    state: oneOf('ready', 'running', 'paused', 'stopped', 'done', 'recovering', 'failed'),
    step: count,
  },
});

// Made by npm run generate; not for editing.
/** Reports of the core, under the names that it gives them for TypeScript. */
import { count, listOf, number, oneOf, optional, record, text } from '../parse.js';

export const stepFields = {
  /** Counted from 1. */
  step: count,
  /** Mean over the step's counted targets before the update, in nats. */
  loss: number,
  /** Global 2-norm before clipping. */
  gradNorm: number,
  /** Rate of this step. */
  learningRate: number,
  /** Counted targets of this step. */
  tokens: count,
  /** Wall time of this step. */
  secs: number,
};
/** One optimizer step. */
export const step = record(stepFields);

export const evaluationFields = {
  /** Mean over counted targets, in nats. */
  loss: number,
  /** exp(loss). */
  perplexity: number,
  /** Counted targets. */
  tokens: count,
};
/** One evaluation. */
export const evaluation = record(evaluationFields);

export const warningFields = {
  /** Stable dotted word. */
  code: text,
  /** Its subject: names of parameters, or a file. */
  subject: optional(text),
  /** What happened. */
  message: text,
};
/** A warning: something the caller should know, although nothing was refused. */
export const warning = record(warningFields);

export const tokenFields = {
  /** Token id. */
  id: count,
  /** The text it adds. */
  text: text,
  /** ln of its probability under the model, before temperature and cuts. */
  logprob: number,
  /** The likeliest tokens, likeliest first. */
  top: listOf(record({
    /** Token id. */
    id: count,
    /** Its text. */
    text: text,
    /** Its probability under the model, before temperature and cuts. */
    prob: number,
  })),
};
/** One generated token. */
export const token = record(tokenFields);

export const profileFields = {
  /** Steps that were timed. */
  steps: count,
  /** The clock that was used. */
  timing: oneOf('device', 'system'),
  /** Mean milliseconds of all kernels per step. */
  ms: number,
  /** Mean launches of the catalogue's kernels per step, by the counter of `dispatches`. */
  dispatches: number,
  /** Number of launches in all steps that were shorter than the resolution of the device's clock, and so have no time. */
  unmeasured: count,
  /** Most bytes of buffers in use on the device at once. */
  inUseBytes: count,
  /** Most bytes of the pages that its allocator had at once, used or not. */
  reservedBytes: count,
  /** The kernels, slowest first. */
  kernels: listOf(record({
    /** Its stem; for a kernel that Burn generated `Burn: ` and its type. */
    kernel: text,
    /** Mean launches per step. */
    launches: number,
    /** Mean milliseconds per step. */
    ms: number,
    /** Share of the time of all kernels, 0 to 1. */
    share: number,
  })),
};
/** Where the device's time of a step goes. */
export const profile = record(profileFields);

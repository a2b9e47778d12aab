// Made by npm run generate; not for editing.
/** Reports of the core, under the names that it gives them for TypeScript. */
import { count, flag, listOf, number, oneOf, optional, record, text } from '../parse.js';

export const stepFields = {
  /** Number of the step, counted from 1. */
  step: count,
  /** Number of passes over the data at the end of the step, in fractions. */
  epoch: number,
  /** Mean loss over the step's counted targets before the update, in nats. */
  loss: number,
  /** Global 2-norm of the gradients before clipping. */
  gradNorm: number,
  /** Learning rate of this step. */
  learningRate: number,
  /** Number of counted targets of this step. */
  tokens: count,
  /** Wall time of this step, in seconds. */
  secs: number,
};
/** Report of one optimizer step. */
export const step = record(stepFields);

export const evaluationFields = {
  /** Mean loss over counted targets, in nats. */
  loss: number,
  /** exp(loss), if f64 has such a number. */
  perplexity: optional(number),
  /** True if exp(loss) is beyond f64. */
  perplexityOverflow: optional(flag),
  /** Share of the counted targets that are the arg max of the logits, which greedy generation takes; among equal logits, the lowest id. */
  accuracy: number,
  /** Number of counted targets. */
  tokens: count,
};
/** Report of one evaluation. */
export const evaluation = record(evaluationFields);

export const warningFields = {
  /** Stable dotted code. */
  code: text,
  /** Subject: names of parameters, or a file. */
  subject: optional(text),
  /** Description of what happened. */
  message: text,
};
/** Warning: something that the caller should know, although nothing was refused. */
export const warning = record(warningFields);

export const tokenFields = {
  /** Token id. */
  id: count,
  /** Text that the token adds. */
  text: text,
  /** Natural logarithm of its probability under the model, before temperature and cuts. */
  logprob: number,
  /** The likeliest tokens, likeliest first. */
  top: listOf(record({
    /** Token id. */
    id: count,
    /** Text of the token. */
    text: text,
    /** Probability under the model, before temperature and cuts. */
    prob: number,
  })),
};
/** One generated token. */
export const token = record(tokenFields);

export const scoreFields = {
  /** All tokens. */
  tokens: listOf(record({
    /** Token id. */
    id: count,
    /** Text that the token adds in the middle of a text. */
    text: text,
    /** Natural logarithm of its probability after the tokens before it; absent for the first token. */
    logprob: optional(number),
    /** Rank among all tokens by probability, from 1; absent for the first token. */
    rank: optional(count),
    /** Likeliest tokens of this position, likeliest first. */
    top: listOf(record({
      /** Token id. */
      id: count,
      /** Text of the token. */
      text: text,
      /** Probability under the model, before temperature and cuts. */
      prob: number,
    })),
  })),
  /** Mean of −logprob over the tokens after the first, in nats; absent for a text of one token. */
  loss: optional(number),
  /** Warnings about the text or the conversation. */
  warnings: listOf(record({
    /** Stable dotted code. */
    code: text,
    /** Message of the warning, as a sentence. */
    message: text,
  })),
};
/** Tokens of a text with their probabilities. */
export const score = record(scoreFields);

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

export const gpuFields = {
  /** Name of the adapter. */
  adapter: text,
  /** Name and version of its driver; empty in browsers, which do not report it. */
  driver: text,
  /** `webgpu`, `vulkan`, `metal` or `dx12`. */
  backend: text,
  /** True for a CPU that runs shaders, which gets kernels of its own. */
  software: flag,
  /** Clock that was used; kernels that are shorter than its ticks are measured by the host's clock. */
  timing: oneOf('device', 'system'),
  /** Peak rate of chains of multiply-adds in f32, in 10⁹ floating point operations per second. */
  peakGflopPerSec: number,
  /** Rate of a copy in 10⁹ bytes per second, counting reads and writes. */
  copyGbPerSec: number,
  /** All kernels, those of the peak and the copy first. */
  kernels: listOf(record({
    /** Name of the computation. */
    name: text,
    /** Shape at which it was measured. */
    shape: text,
    /** True if that is the reference shape. Slow devices get a part of it. */
    whole: flag,
    /** File stems of the kernels that this device runs for it. */
    kernels: listOf(text),
    /** Duration of a pass in milliseconds. */
    ms: number,
    /** Rate in 10⁹ floating point operations of the formula per second; for arithmetic only. */
    gflopPerSec: optional(number),
    /** Rate in 10⁹ bytes per second, counting the bytes that have to be read and written, each value once. */
    gbPerSec: number,
    /** Speed as a fraction of the peak or of a copy, as `of` says. */
    fraction: number,
    /** Quantity that `fraction` refers to. */
    of: oneOf('peak', 'copy'),
    /** Number of times that one step of SmolLM2-135M computes it, if it is one of that step's products; 0 otherwise. */
    inStep: count,
  })),
};
/** Peak rates of a GPU, and how near the kernels come to them. */
export const gpu = record(gpuFields);

// Made by npm run generate; not for editing.
/** Reports of the core, under the names that it gives them for TypeScript. */
import { count, flag, listOf, number, oneOf, optional, record, text } from '../parse.js';

export const stepFields = {
  /** Counted from 1. */
  step: count,
  /** Passes over the data at its end, in fractions. */
  epoch: number,
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
  /** exp(loss), where f64 has such a number. */
  perplexity: optional(number),
  /** Whether exp(loss) is beyond f64. */
  perplexityOverflow: optional(flag),
  /** Share of the counted targets that are the arg max of the logits, which greedy generation takes; of equal logits the lowest id is. */
  accuracy: number,
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

export const scoreFields = {
  /** All tokens. */
  tokens: listOf(record({
    /** Token id. */
    id: count,
    /** The text it adds in the middle of a text. */
    text: text,
    /** ln of its probability after the tokens before it; the first has none. */
    logprob: optional(number),
    /** Its place among all tokens by their probability, from 1; the first has none. */
    rank: optional(count),
    /** The likeliest tokens of its position, likeliest first. */
    top: listOf(record({
      /** Token id. */
      id: count,
      /** Its text. */
      text: text,
      /** Its probability under the model, before temperature and cuts. */
      prob: number,
    })),
  })),
  /** Mean of −logprob over the tokens after the first, in nats; a text of one token has none. */
  loss: optional(number),
};
/** The tokens of a text with their probabilities. */
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
  /** The adapter's name. */
  adapter: text,
  /** Name and version of its driver; empty in browsers, which do not tell. */
  driver: text,
  /** `webgpu`, `vulkan`, `metal` or `dx12`. */
  backend: text,
  /** Whether it is a CPU that runs shaders, which gets kernels of its own. */
  software: flag,
  /** The clock that was used; kernels that are shorter than its ticks are measured by the host's. */
  timing: oneOf('device', 'system'),
  /** 10⁹ floating point operations in a second of chains of multiply-adds, f32. */
  peakGflopPerSec: number,
  /** 10⁹ bytes in a second that a copy reads and writes. */
  copyGbPerSec: number,
  /** The kernels, those two first. */
  kernels: listOf(record({
    /** What is computed. */
    name: text,
    /** At which shape. */
    shape: text,
    /** Whether that is the reference shape. Slow devices get a part of it. */
    whole: flag,
    /** Stems of the kernels that this device runs for it. */
    kernels: listOf(text),
    /** Milliseconds of a pass. */
    ms: number,
    /** 10⁹ floating point operations of the formula in a second; for arithmetic alone. */
    gflopPerSec: optional(number),
    /** 10⁹ bytes in a second: what has to be read and written, each value once. */
    gbPerSec: number,
    /** Its speed as a part of the peak or of a copy, as `of` says. */
    fraction: number,
    /** What it is a fraction of. */
    of: oneOf('peak', 'copy'),
    /** How often one step of SmolLM2-135M computes it, if it is one of that step's products; 0 otherwise. */
    inStep: count,
  })),
};
/** What a GPU does at most, and how near the kernels come to it. */
export const gpu = record(gpuFields);

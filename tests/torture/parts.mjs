// The parts of the torture tests, in their full form and in the short form of npm test.
import { abort } from './abort.mjs';
import { calls } from './calls.mjs';
import { crossing } from './crossing.mjs';
import { csp } from './csp.mjs';
import { defaults } from './defaults.mjs';
import { files } from './files.mjs';
import { flips } from './flips.mjs';
import { heap } from './heap.mjs';
import { hidden } from './hidden.mjs';
import { kills } from './kills.mjs';
import { limits } from './limits.mjs';
import { losses } from './losses.mjs';
import { models } from './models.mjs';
import { panics } from './panics.mjs';
import { quota } from './quota.mjs';
import { soak } from './soak.mjs';
import { storage } from './storage.mjs';
import { tabs } from './tabs.mjs';

/** A model with two tensors of 256 MiB, whose checkpoint with AdamW has 1.6 GB. */
const TWO_OF_256_MIB = {
  vocab: 256 << 10,
  hidden: 256,
  intermediate: 16,
  layers: 1,
  heads: 4,
  kvHeads: 4,
  tied: false,
};
/** A model with one tensor of 64 MiB. */
const ONE_OF_64_MIB = { ...TWO_OF_256_MIB, vocab: 64 << 10, tied: true };

export const PARTS = {
  kills: { work: kills, full: { times: 50 }, short: { times: 1, short: true } },
  losses: { work: losses, full: { times: 4 }, short: { short: true } },
  panics: { work: panics, full: { times: 10 }, short: { times: 1 } },
  storage: { work: storage, full: { times: 10 }, short: { short: true } },
  quota: { work: quota, full: {}, short: { short: true } },
  flips: { work: flips, full: { times: 200, resumes: 20 }, short: { times: 20, resumes: 1 } },
  defaults: { work: defaults, full: { times: 10, long: 2 }, short: { times: 1 } },
  crossing: { work: crossing, full: {}, short: { short: true } },
  files: {
    work: files,
    full: { sizes: { ...TWO_OF_256_MIB, tied: true }, bound: 96 },
    short: { sizes: ONE_OF_64_MIB, bound: 48, short: true },
  },
  models: { work: models, full: {}, short: { short: true } },
  tabs: { work: tabs, full: { times: 10 }, short: {} },
  limits: { work: limits, full: { steps: 50 }, short: { steps: 5 } },
  soak: { work: soak, full: { steps: 2000, cycles: 50 }, short: { steps: 160, cycles: 3 } },
  // In npm test other tests share the cores, so the limits of time are wider there.
  abort: {
    work: abort,
    full: { delays: [0, 50, 300, 1000, 3000], boundMs: 500, large: true },
    short: { delays: [30], boundMs: 3000 },
  },
  calls: { work: calls, full: { count: 2000 }, short: { count: 6, steps: 100 } },
  csp: { work: csp, full: {}, short: {} },
  heap: {
    work: heap,
    full: { sizes: TWO_OF_256_MIB, bound: 96, optimizer: { type: 'adamw' }, beyond: true },
    short: { sizes: ONE_OF_64_MIB, bound: 48, optimizer: { type: 'sgd', momentum: 0.9 } },
  },
  hidden: { work: hidden, full: { secs: 600, least: 0.9 }, short: { secs: 4, least: 0.5 } },
};

/** The values that the large chart can draw, their lines, and the choice among them. */
import type uPlot from 'uplot';

import { bytes, figure, grouped, rate } from './format.js';
import { colour } from './plot.js';

const thin = { spanGaps: true, points: { show: false } };
/** The lines of a chart; each has its own stroke, width and dash. */
export const LINES = {
  raw: {
    label: 'each step',
    style: (): uPlot.Series => ({
      ...thin,
      stroke: `color-mix(in srgb, ${colour('accent')} 32%, transparent)`,
      width: 1,
    }),
  },
  ema: { label: 'smoothed', style: () => ({ ...thin, stroke: colour('accent'), width: 2.2 }) },
  val: {
    label: 'validation',
    style: () => ({
      spanGaps: true,
      stroke: colour('second'),
      width: 2,
      dash: [7, 5],
      points: { show: true, size: 6, fill: colour('paper') },
    }),
  },
  before: {
    label: 'previous run',
    style: () => ({ ...thin, stroke: colour('plan'), width: 1.4, dash: [10, 3] }),
  },
  plan: {
    label: 'planned',
    style: () => ({ ...thin, stroke: colour('plan'), width: 1.6, dash: [2, 4] }),
  },
  used: { label: 'used', style: () => ({ ...thin, stroke: colour('accent'), width: 2.2 }) },
  gpu: {
    label: 'reserved on the GPU',
    style: () => ({ ...thin, stroke: colour('accent'), width: 2.2 }),
  },
} satisfies Record<string, { label: string; style: () => uPlot.Series }>;
export type LineName = keyof typeof LINES;

/** The values that the large chart can draw. `log` if their axis can be logarithmic. */
export const VALUES = {
  loss: { label: 'Loss', lines: ['raw', 'ema', 'val'], log: true, write: (v) => v.toFixed(3) },
  perplexity: { label: 'Perplexity', lines: ['raw', 'ema', 'val'], log: true, write: figure },
  norm: { label: 'Gradient norm', lines: ['raw', 'ema'], log: true, write: (v) => v.toFixed(3) },
  rate: { label: 'Learning rate', lines: ['plan', 'used'], log: false, write: rate },
  speed: { label: 'Tokens per second', lines: ['raw', 'ema'], log: false, write: grouped },
  memory: { label: 'GPU memory', lines: ['gpu'], log: false, write: bytes },
} satisfies Record<
  string,
  { label: string; lines: LineName[]; log: boolean; write: (value: number) => string }
>;
export type Value = keyof typeof VALUES;
export const isValue = (word: string): word is Value => Object.hasOwn(VALUES, word);

/** The choice of what is drawn, which is kept over a reload. */
export interface Choice {
  of: Value;
  log: boolean;
  off: string[];
}
const KEY = 'tabtune.chart';

/** Returns the choice that was kept, or else the losses. */
export function storedChoice(): Choice {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? 'null');
    if (typeof kept === 'object' && kept !== null) {
      const { of, log, off } = kept as Record<string, unknown>;
      return {
        of: typeof of === 'string' && isValue(of) && of !== 'memory' ? of : 'loss',
        log: log === true,
        off: Array.isArray(off) ? off.map(String) : [],
      };
    }
  } catch {
    // Storage may be disabled, or contain something else.
  }
  return { of: 'loss', log: false, off: [] };
}

export function keepChoice(choice: Choice): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(choice));
  } catch {
    // Nothing depends on it.
  }
}

// The formats of figures in the results.

/** Formats a figure with two digits. */
export const figure = (value) => (value === 0 ? '0' : value.toExponential(1));

/** Returns cells about a reader's run: the worst difference, its share of the allowed one, how often its best token is the same. */
export const ranAs = ({ worst, share, bests }, positions) => [
  figure(worst),
  `${(100 * share).toFixed(0)} %`,
  `${bests} of ${positions.length}`,
];

/** Returns a cell about tabtune's own continuation: the worst difference, and the number of positions. */
export const ownAs = ({ worst, count }) => `${figure(worst)} (${count})`;

/** Labels of an axis. */

/** Maximum number of decimals of a label. */
const DECIMALS = 10;

/** Returns the fewest decimals that write every tick as it is: at least so many that no two read the same. */
function decimalsOf(ticks: readonly number[], distance: number): number {
  const written = (decimals: number): boolean =>
    ticks.every((tick) => Math.abs(Number(tick.toFixed(decimals)) - tick) < distance / 100);
  let decimals = 0;
  while (decimals < DECIMALS && !written(decimals)) decimals++;
  return decimals;
}

/** Returns a label for each tick of an axis; no two differ in their ticks and read the same. `null` is a tick without a label. */
export function labelsOf(ticks: readonly (number | null)[]): string[] {
  const numbers = ticks.filter((tick) => tick !== null);
  const gaps = numbers.slice(1).map((tick, at) => tick - (numbers[at] ?? 0));
  const distance = Math.min(Infinity, ...gaps.filter((gap) => gap > 0));
  const largest = Math.max(0, ...numbers.map(Math.abs));
  // Below a thousandth, as a rate is, in powers of ten.
  const power = largest > 0 && largest < 1e-3 ? Math.floor(Math.log10(largest)) : 0;
  const unit = 10 ** power;
  const [scaled, apart] = [numbers.map((tick) => tick / unit), distance / unit];
  const decimals = decimalsOf(scaled, Number.isFinite(apart) ? apart : largest / unit);
  return ticks.map((tick) => {
    if (tick === null) return '';
    const text = (tick / unit).toFixed(decimals);
    if (power !== 0) return Number(text) === 0 ? '0' : `${text}e${power}`;
    return text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, '\u202f');
  });
}

/** Returns labels of numbers of bytes, in the unit of the largest. */
export function labelsOfBytes(ticks: readonly (number | null)[]): string[] {
  const power = Math.floor(Math.log10(Math.max(1, ...ticks.map((tick) => tick ?? 0))) / 3);
  const unit = ['B', 'kB', 'MB', 'GB', 'TB'][power] ?? 'TB';
  const numbers = ticks.map((tick) => (tick === null ? null : tick / 1000 ** power));
  return labelsOf(numbers).map((label) => (label === '' ? '' : `${label} ${unit}`));
}

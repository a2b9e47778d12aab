/** Numbers in the form in which people read them. */
export const grouped = (value: number): string =>
  Math.round(value).toLocaleString('en-GB').replace(/,/g, '\u202f');

/** Formats a measured figure with three digits, or all digits before the decimal point. */
export const figure = (value: number): string =>
  value < 1000 ? String(Number(value.toPrecision(3))) : grouped(value);

/** Formats a number of items with their name: `1 tensor`, `2 tensors`. */
export const counted = (count: number, name: string): string =>
  `${grouped(count)} ${name}${count === 1 ? '' : 's'}`;

export const percent = (share: number): string => `${Math.round(100 * share)} %`;

export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  const units = ['kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1000 ** power;
  return `${scaled.toFixed(scaled < 10 ? 1 : 0)} ${units[power - 1] ?? ''}`;
}

export function secs(value: number): string {
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

export function duration(value: number): string {
  if (value < 60) return `${Math.max(1, Math.round(value))} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
}

export function parameters(value: number): string {
  if (value >= 1e9) return `${(value / 1e9).toFixed(2)} billion`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} million`;
  return grouped(value);
}

export const rate = (value: number): string =>
  value === 0
    ? '0'
    : value < 1e-3
      ? value.toExponential(2).replace(/\.?0+e/, 'e')
      : String(Number(value.toPrecision(3)));
export const when = (time: number): string =>
  new Date(time).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** The driver's settings in the record of a run: JSON in which the options of samples are a JSON text again. */
import { document, otherwise, text } from '../../protocol/parse.js';
import { driverParser } from '../../protocol/protocol.js';
import type { Driver } from '../../protocol/protocol.js';

export const storedDriver = (driver: Driver): string =>
  JSON.stringify({ ...driver, sample: JSON.stringify(driver.sample) });

export function restoredDriver(record: string): Driver {
  const stored = document(JSON.parse(record), 'driver');
  const sample: unknown = JSON.parse(otherwise(text, '{}')(stored['sample'], 'driver.sample'));
  return driverParser({ ...stored, sample }, 'driver');
}

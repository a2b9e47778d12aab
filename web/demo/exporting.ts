/** Exports of a run into a folder or a file that the user picked, or as a download. */
import type {
  ExportChoice,
  ExportOptions,
  ExportTarget,
  GgufType,
  Receipt,
  Trainer,
} from 'tabtune';

import { download } from './dom.js';
import { exportName } from './names.js';

/** Returns the options of an export in this form; its files and the model in them get names that begin with `stem`. */
export function optionsOf({ format, type }: ExportChoice, stem: string): ExportOptions {
  const name = exportName(stem, format).replace(/(\.state_dict)?\.\w+$/, '');
  if (type === undefined) return { format, name };
  return format === 'safetensors' || format === 'peft'
    ? { format, name, dtype: type as 'f32' }
    : { format, name, type: type as GgufType };
}

/** Writes an export to a target, or offers it as a download under a name; returns its receipt. */
export async function write(
  trainer: Trainer,
  to: ExportTarget | string,
  options: ExportOptions,
): Promise<Receipt | undefined> {
  if (typeof to !== 'string') return trainer.exportTo(to, options);
  // A stream, because only `exportTo` returns the receipt; the browser keeps a large Blob on disk.
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>();
  const [receipt, blob] = await Promise.all([
    trainer.exportTo(writable, options),
    new Response(readable).blob(),
  ]);
  download(to, blob);
  return receipt;
}

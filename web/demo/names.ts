/** Names of the files in which a run is taken away: from its label, and safe in every file system, shell and Modelfile. */
import { EXPORT_FORMATS } from 'tabtune';
import type { ExportFormat } from 'tabtune';

/** Maximum number of characters before the ending. */
const LENGTH = 60;
/** Endings of files that labels name. */
const ENDINGS = /\.(gguf|safetensors|txt|md|jsonl?|csv|tsv|parquet|tokens|gz|zip)(?![a-z0-9])/g;
/** Names that Windows reserves for devices. */
const DEVICE = /^(con|prn|aux|nul|com\d|lpt\d)$/;

/** Returns the part of the names before the ending: small letters, digits, and single dots and hyphens between them. */
export function stemOf(label: string): string {
  const stem = label
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(ENDINGS, '')
    .replace(/[^a-z0-9.]+|(?<!\d)\.|\.(?!\d)/g, '-')
    .replace(/-{2,}/g, '-')
    .replace(/^-/, '')
    .slice(0, LENGTH)
    .replace(/[-.]+$/, '');
  return DEVICE.test(stem) ? `${stem}-model` : stem || 'model';
}

/** Returns the name of an export, in which an adapter alone has another one than the whole model; a folder is a zip. */
export function exportName(stem: string, format: ExportFormat): string {
  const { ending, adapter } = EXPORT_FORMATS[format];
  return `${stem}${adapter ? '-adapter' : ''}${ending || '.zip'}`;
}

/** Returns the name of a checkpoint's file, from the one that the package gives it. */
export function checkpointName(given: string): string {
  const [, label = given, step = ''] = /^(.*)(-step-\d+)\.tabtune$/s.exec(given) ?? [];
  return `${stemOf(label)}${step}.tabtune`;
}

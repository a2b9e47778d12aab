// The files of the shaders by their stems, which do not have the folders.
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

const folder = import.meta.dirname;

/** Stem of each kernel, and `common`, with the path of its file. */
export const stems = new Map(
  readdirSync(folder, { encoding: 'utf8', recursive: true })
    .filter((path) => path.endsWith('.wgsl') && !path.startsWith('chunks'))
    .map((path) => [basename(path, '.wgsl'), join(folder, path)]),
);

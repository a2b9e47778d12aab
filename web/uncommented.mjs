// The texts of the shaders in the browser core without their comments, which nobody reads there and everybody would download.
import { readFileSync } from 'node:fs';

/** A shader with spaces in the place of its lines of comment: positions stay as they are. */
export function uncommented(text) {
  return text.replace(/^\s*\/\/.*$/gm, (line) => line.replace(/[^\n]/g, ' '));
}

/** The module with such texts in place of those of `files`. A shader that nothing there uses is not in it, but most are. */
export function withoutComments(wasm, files) {
  const module = Buffer.from(wasm);
  let found = 0;
  for (const file of files) {
    const text = readFileSync(file);
    const bare = Buffer.from(uncommented(text.toString('latin1')), 'latin1');
    const first = module.indexOf(text);
    if (first >= 0) found++;
    for (let at = first; at >= 0; at = module.indexOf(text, at + text.length)) bare.copy(module, at);
  }
  if (2 * found < files.length) throw new Error(`the browser core has the texts of only ${found} of ${files.length} shaders`);
  return module;
}

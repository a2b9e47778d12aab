// Removes the comments from the shaders in the browser core, which no one reads there and everyone would download.
import { readFileSync } from 'node:fs';

/** Returns a shader with its comment lines replaced by spaces, so that positions do not change. */
export function uncommented(text) {
  return text.replace(/^\s*\/\/.*$/gm, (line) => line.replace(/[^\n]/g, ' '));
}

/** Returns the module with the texts of `files` replaced in this way. A shader that nothing there uses is not in it, but most are. */
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

// Compares the results of readers with the expected ones.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../../web/toolchain.mjs';

/** Number of positions of a continuation that are compared, in addition to those of its prompt. */
export const POSITIONS = 24;

/** Returns the allowed error of a log-probability: llama.cpp rounds the activations of a product to the precision of the stored weights. */
export function allowed(type, largest) {
  const plain = { f32: 1e-4, f16: 2e-3, bf16: 2e-3 };
  return plain[type] ?? 0.01 * largest;
}

/**
 * Compares the positions of a forward pass with llama.cpp's; returns the worst difference, its share of the allowed one and of `more`, and the
 * faults.
 */
export function comparePositions(type, ours, theirs, more = 0) {
  const found = { worst: 0, share: 0, bests: 0, wrong: /** @type {string[]} */ ([]) };
  const bound = allowed(type, Math.max(...ours.map(({ largest }) => largest))) + more;
  ours.forEach(({ top, gap }, at) => {
    const off = Math.max(...top.map(([, log], rank) => Math.abs(theirs[at].of[rank] - log)));
    found.worst = Math.max(found.worst, off);
    found.share = Math.max(found.share, off / bound);
    if (!(off <= bound))
      found.wrong.push(`position ${at}: a log-probability is off by ${off}, allowed ${bound}`);
    if (theirs[at].best === top[0][0]) found.bests++;
    else if (gap > 2 * bound)
      found.wrong.push(
        `position ${at}: best token ${theirs[at].best}, expected ${top[0][0]}, ${gap} ahead`,
      );
  });
  return found;
}

/** Returns the largest difference between two readings of the same tokens. */
export const apart = (one, other) =>
  Math.max(
    ...one.flatMap(({ of }, at) => of.map((log, rank) => Math.abs(log - other[at].of[rank]))),
  );

/** Does the same for tabtune's own continuation, which begins after the last token of a prompt of `begin` tokens. */
export function compareOwn(ours, continued, begin) {
  const found = { worst: 0, wrong: /** @type {string[]} */ ([]), count: continued.length };
  continued.forEach(({ top }, at) => {
    const { top: expected, largest } = ours[begin - 1 + at];
    for (const [id, log] of expected) {
      const seen = top.find((each) => each.id === id);
      // Its best five may end in another token if two are equally likely.
      if (!seen && id !== expected[expected.length - 1][0])
        found.wrong.push(`position ${at}: token ${id} is not among the best five of tabtune`);
      if (seen) found.worst = Math.max(found.worst, Math.abs(Math.log(seen.prob) - log) / largest);
    }
  });
  if (continued.length === 0) found.wrong.push('tabtune continued with nothing');
  if (found.worst > 1e-4)
    found.wrong.push(
      `tabtune's own log-probabilities are off by ${found.worst} of the largest logit`,
    );
  return found;
}

/** Returns the differences between the contents of a file according to gguf-py and to another reader. */
export function compareHeaders(gguf, other) {
  const wrong = [];
  const text = (value) => JSON.stringify(value);
  gguf.tensors.forEach((tensor, at) => {
    if (text(tensor) !== text(other.tensors[at]))
      wrong.push(`tensor ${at}: ${text(other.tensors[at])}, gguf-py ${text(tensor)}`);
  });
  const keys = new Set([...Object.keys(gguf.metadata), ...Object.keys(other.metadata)]);
  for (const key of keys)
    if (text(gguf.metadata[key]) !== text(other.metadata[key]))
      wrong.push(`key ${key}: ${text(other.metadata[key])?.slice(0, 80)}`);
  const counts = [gguf.tensors.length, Object.keys(gguf.metadata).length];
  if (text(other.counts) !== text(counts) || other.version !== 3)
    wrong.push(`version ${other.version}, counts ${other.counts}, expected 3, ${counts}`);
  return wrong;
}

/** Returns 100 texts that are hard on tokenizers, and lines of a book: all in composed form, since llama.cpp does not compose. */
export function texts() {
  const { lines } = JSON.parse(
    readFileSync(join(root, 'tests', 'golden', 'tokenizers.json'), 'utf8'),
  );
  // No argument of a program can contain the character 0.
  return lines
    .filter((line) => line === line.normalize('NFC') && !line.includes('\0'))
    .slice(0, 100);
}

export function compareTexts(asked, expected, found) {
  return asked.flatMap((text, at) =>
    String(expected[at]) === String(found[at].ids)
      ? []
      : [`${JSON.stringify(text)}: ids ${found[at].ids}, expected ${expected[at]}`],
  );
}

// Files in wasm as natively: every hostile file has the same result, every export the same bytes; and no model takes much memory during its export.
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment, root, run } from '../../web/toolchain.mjs';
import { Arena, differences } from './arena.mjs';
import { exports } from './exports.mjs';
import { sparse } from './sparse.mjs';
import { twins } from './twins.mjs';

const GOLDEN = join(root, 'tests', 'golden', 'hostile');
const FAULT = 'hostile file, in wasm as natively';
/** Time limit for a file's share of its call, without the start of the worker. Applied by the full form, on a machine that does nothing else. */
const BOUND_MS = 100;

/** Returns the native program: the one that TABTUNE names, otherwise the debug build, which is built if missing. */
export async function native() {
  if (process.env.TABTUNE) return process.env.TABTUNE;
  const binary = join(environment.CARGO_TARGET_DIR, 'debug', 'tabtune');
  await run('cargo', ['build', '--workspace', '--bins', '--locked', '--quiet']);
  if (!existsSync(binary)) throw new Error(`${binary} is missing`);
  return binary;
}

function bytesOf(part) {
  if (part.text !== undefined) return Buffer.from(part.text);
  if (part.hex !== undefined) return Buffer.from(part.hex, 'hex');
  if (part.u64le !== undefined) {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(BigInt(part.u64le));
    return bytes;
  }
  return Buffer.from(part.repeat.repeat(part.count));
}

/** Returns a shard of one F32 value per tensor. */
function shard(tensors) {
  const header = Object.fromEntries(
    tensors.map((name, index) => [
      name,
      { dtype: 'F32', shape: [1], data_offsets: [4 * index, 4 * index + 4] },
    ]),
  );
  const json = Buffer.from(JSON.stringify(header));
  const front = Buffer.alloc(8);
  front.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([front, json, Buffer.alloc(4 * tensors.length)]);
}

const ENDINGS = {
  safetensors: 'safetensors',
  gguf: 'gguf',
  index: 'index.json',
  peft: 'adapter_config.json',
  json: 'state_dict.json',
};

/** Writes every case to its own folder: the file to judge first, then its shards. */
function laidOut(folder) {
  const { cases } = JSON.parse(readFileSync(join(GOLDEN, 'expected.json'), 'utf8'));
  return cases.map((each) => {
    const place = join(folder, each.id);
    mkdirSync(place);
    const name = each.file ?? `${each.id}.${ENDINGS[each.format]}`;
    if (each.file) copyFileSync(join(GOLDEN, each.file), join(place, name));
    else writeFileSync(join(place, name), Buffer.concat(each.build.map(bytesOf)));
    const shards = Object.entries(each.shards ?? {});
    for (const [shardName, tensors] of shards)
      writeFileSync(join(place, shardName), shard(tensors));
    return {
      id: each.id,
      format: each.format,
      names: [name, ...shards.map(([shardName]) => shardName)],
    };
  });
}

/** Sorts keys, so that equal reports are equal texts. */
function canonical(value) {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .filter((key) => value[key] !== undefined && value[key] !== null)
      .map((key) => [key, canonical(value[key])]),
  );
}

/** Returns what the native program reports of each case; all cases of a format in one call, as in the page. */
function natively(binary, folder, cases) {
  const found = new Map();
  for (const format of new Set(cases.map((each) => each.format))) {
    const ours = cases.filter((each) => each.format === format);
    const paths = ours.map(({ id, names }) => join(folder, id, names[0]));
    const printed = execFileSync(
      binary,
      ['inspect', '--json', '--read', '--as', format, ...paths],
      { encoding: 'utf8', maxBuffer: 2 ** 28 },
    );
    const lines = printed.trim().split('\n');
    for (const [at, { id }] of ours.entries()) found.set(id, JSON.parse(lines[at]));
  }
  return found;
}

async function hostile(binary, tally, short) {
  const folder = mkdtempSync(join(tmpdir(), 'tabtune-hostile-'));
  const cases = laidOut(folder);
  const arena = await Arena.start({ folders: { '/hostile/': folder } });
  try {
    await arena.with(async (subject) => {
      const answers = await subject.do(
        async (s, { cases, short }) => {
          const fetched = async ({ id, names }) =>
            Promise.all(
              names.map(
                async (name) =>
                  new File(
                    [await (await fetch(`/hostile/${id}/${encodeURIComponent(name)}`)).blob()],
                    name,
                  ),
              ),
            );
          // One call for all files of a format, whose names differ; a file with accompanying files is inspected separately.
          const groups = [
            ...Map.groupBy(cases, ({ id, format, names }) =>
              names.length > 1 ? id : format,
            ).values(),
          ];
          const all = {};
          const asked = async (files, format) => {
            const { ok, value, code, message, ms } = await s.settled(
              s.tabtune.inspectFiles(files, { format, read: true }),
            );
            return {
              found: (name) =>
                ok
                  ? value.files[files.findIndex((file) => file.name === name)]
                  : `${code} ${message}`,
              ms,
            };
          };
          // Every call starts a new worker, which is not a file's fault.
          const starts = [];
          for (let time = 0; time < (short ? 1 : 5); time++)
            starts.push((await asked([new File(['{}'], 'empty.json')], 'json')).ms);
          const start = starts.sort((a, b) => a - b)[starts.length >> 1];
          for (const group of groups) {
            const files = (await Promise.all(group.map(fetched))).flat();
            const { found, ms } = await asked(files, group[0].format);
            for (const { id, names } of group)
              all[id] = { found: found(names[0]), ms: Math.max(0, ms - start) / files.length };
          }
          return all;
        },
        { cases, short },
      );
      const expected = natively(binary, folder, cases);
      for (const { id } of cases)
        tally.add(
          FAULT,
          differences(id, canonical(answers[id].found), canonical(expected.get(id))),
          answers[id].ms,
          short ? undefined : BOUND_MS,
        );
    });
  } finally {
    await arena.end();
    rmSync(folder, { recursive: true });
  }
}

export async function files(arena, tally, { sizes, bound, short = false }) {
  const binary = await native();
  await hostile(binary, tally, short);
  await twins(binary, tally, { short });
  await exports(arena, tally, { sizes, bound, short });
  if (!short) await sparse(arena, tally);
}

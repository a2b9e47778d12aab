// Every writer gives the same bytes in the browser as natively: files, and the receipts that list their sums.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY, differences } from './arena.mjs';
import { makeModels } from './make-models.mjs';

const FAULT = 'line 44: files have the bytes of the native program';
const GGUF_TYPES = ['as-base', 'f32', 'f16', 'bf16', 'q8_0', 'q6_k', 'q5_1', 'q5_0', 'q4_k', 'q4_k_m', 'q4_1', 'q4_0'];
const DTYPES = ['stored', 'f32', 'bf16', 'f16'];
const GOLDEN = join(root, 'tests', 'golden');
const QWEN3_PARTS = [1, 2, 3].map((part) => `qwen3-0000${part}-of-00003.gguf`);

const ggufOf = (types, more = {}) => types.map((type) => ({ format: 'gguf', type, ...more }));
const folders = (dtypes) => dtypes.map((dtype) => ({ dtype }));
const JSONS = ['numbers', 'base64'].map((encoding) => ({ format: 'json', encoding }));
const SHARDED = { dtype: 'bf16', shardBytes: 100_000, manifest: true, card: { license: 'mit', baseModel: 'a/b', data: 'some words', text: 'More.' } };

/** The golden model of these files in a folder of its own, since the native program takes all files of a folder. */
function goldenIn(made, name, files) {
  mkdirSync(join(made, name));
  for (const file of files) copyFileSync(join(GOLDEN, 'models', file), join(made, name, basename(file)));
}

/** Models by the name of their folder, and what each becomes; the short form takes fewer models, and each type once. */
function models(made, short) {
  const types = short ? ['f16', 'q8_0', 'q4_k_m'] : GGUF_TYPES;
  const dtypes = short ? ['f16'] : DTYPES;
  makeModels(made);
  goldenIn(made, 'gguf', ['llama3.gguf']);
  goldenIn(made, 'split', QWEN3_PARTS);
  goldenIn(made, 'tiny', ['qwen2/config.json', 'qwen2/model.safetensors']);
  const others = short ? [] : ['llama-3', 'llama-tied', 'qwen3', 'qwen3-tied'];
  return [
    { name: 'qwen2', ask: [...ggufOf(GGUF_TYPES), ...folders(DTYPES), SHARDED] },
    { name: 'gpt2', ask: [...ggufOf(types), ...folders(dtypes)] },
    // Rows that the blocks of 256 divide.
    { name: 'wide', ask: [...ggufOf(short ? ['q5_1', 'q6_k', 'q4_k_m'] : types), ...folders(dtypes)] },
    ...others.map((name) => ({ name, ask: [...ggufOf(types), ...folders(dtypes), SHARDED] })),
    { name: 'gguf', ask: [...JSONS, ...folders(dtypes), ...ggufOf(['as-base'], { base: ['llama3.gguf'] })] },
    { name: 'split', ask: [...ggufOf(['as-base'], { base: QWEN3_PARTS }), ...folders(dtypes)] },
    { name: 'tiny', ask: [...JSONS, ...ggufOf(['as-base', 'q8_0'], { base: ['qwen2.gguf'] }), ...ggufOf(['as-base'], { base: ['llama3.gguf'] })] },
    { name: 'tiny', adapter: 'qwen2-patterns', ask: [...ggufOf(types), ...ggufOf(types, { base: ['qwen2.gguf'] }), ...folders(DTYPES), ...JSONS] },
  ];
}

/** What the terminal is asked for. */
function args({ model, adapter }, { format = 'safetensors', type, dtype, encoding, shardBytes, manifest, base = [], card = {} }, to) {
  const pairs = { type, dtype, encoding, 'shard-bytes': shardBytes, license: card.license, 'base-model': card.baseModel, 'data-note': card.data, note: card.text, 'merge-adapter': adapter && join(GOLDEN, 'adapters', adapter) };
  const given = Object.entries(pairs).flatMap(([key, value]) => (value === undefined ? [] : [`--${key}`, String(value)]));
  const files = base.map((name) => join(GOLDEN, 'models', name));
  return ['convert', '--json', '--model', model, '--to', to, '--format', format, '--name', 'm', ...(files.length > 0 ? ['--base', ...files] : []), ...(manifest ? ['--manifest'] : []), ...given];
}

/** Name, size and SHA-256 of each file that the native program makes of it; a receipt that stands beside a file has the name that it has in the browser. */
async function natively(binary, to, given) {
  try {
    await promisify(execFile)(binary, given);
  } catch ({ stdout, stderr }) {
    return { refused: JSON.parse((stdout || stderr).trim().split('\n').at(-1)).error.code };
  }
  const paths = statSync(to).isDirectory() ? readdirSync(to).map((name) => join(to, name)) : [to, `${to}.receipt.json`];
  const files = paths.map((path) => {
    const bytes = readFileSync(path);
    const name = basename(path).endsWith('.receipt.json') ? 'tabtune.receipt.json' : basename(path);
    return [name, bytes.length, createHash('sha256').update(bytes).digest('hex')];
  });
  return { files };
}

const sorted = ({ files, refused }) => (files ? files.sort(([a], [b]) => (a < b ? -1 : 1)) : refused);

/** The same in the page. */
const inPage = (page, subject) =>
  page.do(async (_, { name, names, adapter, ask }) => {
    const e = await import('/torture/exports.mjs');
    const mergeAdapter = adapter && (await e.fetched(`/adapters/${adapter}`, ['adapter_config.json', 'adapter_model.safetensors']));
    const exported = async (model) => {
      const all = [];
      for (const { base, ...options } of ask) {
        const given = base && { base: await e.fetched('/models', base) };
        all.push(await e.summed(model, { ...options, name: 'm', card: { ...options.card, name: 'm' }, ...given }));
      }
      return all;
    };
    return e.withModel(await e.fetched(`/made/${name}`, names), exported, { mergeAdapter });
  }, subject);

/** What a run becomes in the browser, and its checkpoint natively: weights, optimizer, groups. The receipt has the run's own account. */
async function trained(arena, binary, tally, out) {
  const ways = [{ dtype: 'stored', optimizer: true, manifest: true }, { dtype: 'bf16' }, { format: 'gguf', type: 'f16' }, { format: 'gguf', type: 'q8_0' }];
  const { checkpoint, found } = await arena.with((page) =>
    page.do(async (s, { setting, ways }) => {
      const e = await import('/torture/exports.mjs');
      await s.create(setting);
      await s.step(2);
      await s.current().save();
      const place = await (await navigator.storage.getDirectory()).getDirectoryHandle('trained', { create: true });
      await s.current().checkpoints.exportFolder(place);
      const checkpoint = [];
      const gather = async (handle) => {
        for await (const entry of handle.values()) {
          if (entry.kind === 'directory') await gather(entry);
          else checkpoint.push([entry.name, Array.from(new Uint8Array(await (await entry.getFile()).arrayBuffer()), (byte) => byte.toString(16).padStart(2, '0')).join('')]);
        }
      };
      await gather(place);
      const found = [];
      for (const way of ways) found.push(await e.summed(s.current(), { ...way, name: 'm', card: { name: 'm' } }));
      await s.current().dispose();
      return { checkpoint, found };
    }, { setting: TINY, ways }),
  );
  const folder = mkdtempSync(join(out, 'checkpoint-'));
  for (const [name, hex] of checkpoint) writeFileSync(join(folder, name), Buffer.from(hex, 'hex'));
  const own = ({ files, refused }) => refused ?? sorted({ files: files.filter(([name]) => !/receipt|README/.test(name)) });
  for (const [index, way] of ways.entries()) {
    const to = join(mkdtempSync(join(out, 'm-')), way.format ? 'm.gguf' : 'm');
    const options = args({}, way, to).slice(4);
    const expected = await natively(binary, to, ['export', '--json', '--checkpoint', folder, ...(way.optimizer ? ['--optimizer'] : []), ...options]);
    tally.add(FAULT, [...differences(`a run ${JSON.stringify(way)}`, own(found[index]), own(expected)), ...(expected.files ? [] : [expected.refused])]);
  }
}

export async function twins(binary, tally, { short }) {
  const made = mkdtempSync(join(tmpdir(), 'tabtune-twins-'));
  const out = mkdtempSync(join(tmpdir(), 'tabtune-twins-out-'));
  const arena = await Arena.start({ folders: { '/made/': made, '/models/': join(GOLDEN, 'models'), '/adapters/': join(GOLDEN, 'adapters') } });
  try {
    const all = models(made, short).map((each) => ({ ...each, model: join(made, each.name), names: readdirSync(join(made, each.name)) }));
    const natives = async (subject) => {
      const found = [];
      for (const options of subject.ask) {
        const to = join(mkdtempSync(join(out, 'm-')), { gguf: 'm.gguf', json: 'm.state_dict.json' }[options.format] ?? 'm');
        found.push(await natively(binary, to, args(subject, options, to)));
      }
      return found;
    };
    let refused = 0;
    await arena.with(async (page) => {
      for (const subject of all) {
        const [found, expected] = await Promise.all([inPage(page, subject), natives(subject)]);
        for (const [index, options] of subject.ask.entries()) {
          tally.add(FAULT, differences(`${subject.name} ${subject.adapter ?? ''} ${JSON.stringify(options)}`, sorted(found[index]), sorted(expected[index])));
          if (expected[index].refused) refused += 1;
        }
      }
    });
    await trained(arena, binary, tally, out);
    tally.note(FAULT, `${all.length} models and a run; ${refused} refused, in both with the same code`);
  } finally {
    await arena.end();
    rmSync(made, { recursive: true });
    rmSync(out, { recursive: true });
  }
}

// Every writer produces the same bytes in the browser as natively: files, and the receipts that list their checksums.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../web/toolchain.mjs';
import { Arena, TINY, differences } from './arena.mjs';
import { args, natively, sorted } from './native-exports.mjs';
import { merged, models } from './twin-models.mjs';

/** @typedef {import('./native-exports.mjs').Found} Found */

const FAULT = 'line 44: files have the bytes of the native program';
const GOLDEN = join(root, 'tests', 'golden');

/** Returns name, size and SHA-256 of each file of a model's exports in the page. */
const inPage = (page, subject) =>
  page.do(async (_, { name, names, served: adapter, ask }) => {
    const e = await import('/torture/exports.mjs');
    const mergeAdapter =
      adapter && (await e.fetched(adapter, ['adapter_config.json', 'adapter_model.safetensors']));
    const exported = async (model) => {
      const all = [];
      for (const { base, ...options } of ask) {
        const given = base && { base: await e.fetched('/models', base) };
        all.push(
          await e.summed(model, {
            ...options,
            name: 'm',
            card: { ...options.card, name: 'm' },
            ...given,
          }),
        );
      }
      return all;
    };
    return e.withModel(await e.fetched(`/made/${name}`, names), exported, { mergeAdapter });
  }, subject);

/**
 * Compares exports of a run in the browser with those of its checkpoint natively: weights, optimizer, groups. The receipt has the run's own record.
 */
async function trained(arena, binary, tally, out) {
  const ways = [
    { dtype: 'stored', optimizer: true, manifest: true },
    { dtype: 'bf16' },
    { format: 'gguf', type: 'f16' },
    { format: 'gguf', type: 'q8_0' },
  ];
  const { checkpoint, found } = await arena.with((page) =>
    page.do(
      async (s, { setting, ways }) => {
        const e = await import('/torture/exports.mjs');
        await s.create(setting);
        await s.step(2);
        await s.current().save();
        const place = await (
          await navigator.storage.getDirectory()
        ).getDirectoryHandle('trained', { create: true });
        await s.current().checkpoints.exportFolder(place);
        const checkpoint = [];
        const gather = async (handle) => {
          for await (const entry of handle.values()) {
            if (entry.kind === 'directory') await gather(entry);
            else
              checkpoint.push([
                entry.name,
                Array.from(new Uint8Array(await (await entry.getFile()).arrayBuffer()), (byte) =>
                  byte.toString(16).padStart(2, '0'),
                ).join(''),
              ]);
          }
        };
        await gather(place);
        const found = [];
        for (const way of ways)
          found.push(await e.summed(s.current(), { ...way, name: 'm', card: { name: 'm' } }));
        await s.current().dispose();
        return { checkpoint, found };
      },
      { setting: TINY, ways },
    ),
  );
  const folder = mkdtempSync(join(out, 'checkpoint-'));
  for (const [name, hex] of checkpoint) writeFileSync(join(folder, name), Buffer.from(hex, 'hex'));
  /** @param {Found} found */
  const own = ({ files, refused }) =>
    refused ?? sorted({ files: files?.filter(([name]) => !/receipt|README/.test(name)) });
  for (const [index, way] of ways.entries()) {
    const to = join(mkdtempSync(join(out, 'm-')), way.format ? 'm.gguf' : 'm');
    const options = args({}, way, to).slice(4);
    const expected = await natively(binary, to, [
      'export',
      '--json',
      '--checkpoint',
      folder,
      ...(way.optimizer ? ['--optimizer'] : []),
      ...options,
    ]);
    tally.add(FAULT, [
      ...differences(`a run ${JSON.stringify(way)}`, own(found[index]), own(expected)),
      ...(expected.files ? [] : [expected.refused]),
    ]);
  }
}

export async function twins(binary, tally, { short }) {
  const made = mkdtempSync(join(tmpdir(), 'tabtune-twins-'));
  const out = mkdtempSync(join(tmpdir(), 'tabtune-twins-out-'));
  const arena = await Arena.start({
    folders: {
      '/made/': made,
      '/models/': join(GOLDEN, 'models'),
      '/adapters/': join(GOLDEN, 'adapters'),
    },
  });
  try {
    /** @param {{ name: string, adapter?: string }} subject */
    const places = ({ name, adapter }) => {
      const own = adapter === 'factors';
      const factors = adapter && {
        adapter: own ? join(made, adapter) : join(GOLDEN, 'adapters', adapter),
        served: `/${own ? 'made' : 'adapters'}/${adapter}`,
      };
      return { ...factors, model: join(made, name), names: readdirSync(join(made, name)) };
    };
    const listed = models(made, short);
    const all = [...listed, ...(await merged(binary, made, short))].map((each) => ({
      ...each,
      ...places(each),
    }));
    const natives = async (subject) => {
      const found = [];
      for (const options of subject.ask) {
        const to = join(
          mkdtempSync(join(out, 'm-')),
          { gguf: 'm.gguf', json: 'm.state_dict.json' }[options.format] ?? 'm',
        );
        found.push(await natively(binary, to, args(subject, options, to)));
      }
      return found;
    };
    let refused = 0;
    await arena.with(async (page) => {
      for (const subject of all) {
        const [found, expected] = await Promise.all([inPage(page, subject), natives(subject)]);
        for (const [index, options] of subject.ask.entries()) {
          const title = `${subject.name} ${subject.adapter ?? ''} ${JSON.stringify(options)}`;
          tally.add(FAULT, differences(title, sorted(found[index]), sorted(expected[index])));
          if (expected[index].refused) refused += 1;
        }
      }
    });
    await trained(arena, binary, tally, out);
    tally.note(
      FAULT,
      `${all.length} models and a run; ${refused} refused, in both with the same code`,
    );
  } finally {
    await arena.end();
    rmSync(made, { recursive: true });
    rmSync(out, { recursive: true });
  }
}

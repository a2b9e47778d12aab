// Files beyond the range of wasm's 32-bit words: described from their headers immediately, and converted.
import { differences } from './arena.mjs';

const MIB = 2 ** 20;
const BOUND_MS = 1000;
/** Maximum growth of wasm memory. */
const BOUND_MIB = 96;
/** A Llama with 6.2 GB of F32, and one with 4 GB in its table alone. */
const SIX_GB = {
  vocab: 32_000,
  hidden: 4096,
  intermediate: 11_008,
  layers: 7,
  heads: 32,
  kvHeads: 32,
};
const FOUR_GB = {
  vocab: 1_000_000,
  hidden: 1024,
  intermediate: 64,
  layers: 1,
  heads: 8,
  kvHeads: 8,
};

/** Tests the description of a large file. */
async function told(arena, tally) {
  for (const [what, sizes] of Object.entries({ '4 GB': FOUR_GB, '6 GB': SIX_GB })) {
    const fault = `what a model of ${what} is, from its header`;
    const { report, size } = await arena.inPage(async (s, sizes) => {
      const files = s.modelFiles(sizes);
      // The browser has compiled the core once, as in a page that was used before.
      await s.tabtune.inspectFiles(new File(['{}'], 'empty.json'));
      const report = await s.settled(s.tabtune.inspectFiles(files));
      return { report, size: files[0].size };
    }, sizes);
    const { ok, value, message, ms } = report;
    const wrong = ok ? differences('kind', [value.kind, value.refusals], ['model', []]) : [message];
    const [folder, f16] = ok
      ? [
          value.exports.find(({ format }) => format === 'safetensors'),
          value.exports.find(({ type }) => type === 'f16'),
        ]
      : [];
    // Sizes of more than 32 bits.
    if (
      ok &&
      !(
        folder.bytes > size &&
        folder.bytes < size + 1e6 &&
        f16.bytes > size / 2 &&
        f16.bytes < size / 2 + 1e6
      )
    )
      wrong.push(`${size} bytes: ${JSON.stringify([folder, f16])}`);
    tally.add(fault, wrong, ms, BOUND_MS);
    tally.note(fault, `${size} bytes; worst includes the start of a worker`);
  }
}

/** Converts a folder of 6 GB to a GGUF file. */
async function converted(arena, tally) {
  const fault = 'line 32: a folder of 6 GB becomes a GGUF file of F32, every word compared';
  await arena.with(async (subject) => {
    const found = await subject.do(async (s, sizes) => {
      const e = await import('/torture/exports.mjs');
      const { comparing } = await import('/torture/sparse.mjs');
      const files = s.modelFiles(sizes);
      const { stream, report } = await comparing(files[0], sizes.heads);
      return e.withModel(files, async (model) => {
        const { ok, value, message, ms } = await s.settled(
          model.exportTo(stream, { format: 'gguf', type: 'f32' }),
        );
        const { wasm, wasmAtStart, blobs } = await s.tell('counts');
        return {
          failed: ok ? undefined : message,
          told: value?.outputs[0].bytes,
          offered: model.exports.find(({ type }) => type === 'f32'),
          ...report(),
          grown: wasm - wasmAtStart,
          blobs,
          ms,
        };
      });
    }, SIX_GB);
    const { failed, bytes, words, expected, beyond, highest, grown, ms, wrong } = found;
    const all = [
      ...(failed ? [failed] : []),
      ...wrong,
      ...differences('words', [words, found.tensors], [expected, found.names]),
      ...differences('bytes', [bytes, highest], [found.told, found.told]),
    ];
    if (grown > BOUND_MIB * MIB)
      all.push(`wasm memory grew by ${(grown / MIB).toFixed(1)} MiB, bound ${BOUND_MIB} MiB`);
    if (found.blobs > 8 * MIB) all.push(`a Blob of ${found.blobs} bytes was made`);
    if (!(beyond > 5 && bytes > 6e9 && found.offered.bytes > bytes))
      all.push(`${beyond} tensors begin beyond 2³² of ${bytes} bytes`);
    tally.add(fault, all, ms);
    tally.note(
      fault,
      `${bytes} bytes, ${beyond} tensors begin beyond 2³²; wasm memory +${(grown / MIB).toFixed(1)} MiB, ${(bytes / 1e3 / ms).toFixed(0)} MB/s`,
    );
  });
}

export async function sparse(arena, tally) {
  await told(arena, tally);
  await converted(arena, tally);
}

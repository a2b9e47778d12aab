// Wasm memory remains small while a model with a large tensor is converted and merged, into the origin's private files, in every format.
const MIB = 2 ** 20;
/** Maximum size of a piece of an export. */
const PIECE_BYTES = 8 * MIB;

const gguf = (...types) => types.map((type) => ({ format: 'gguf', type }));
const folders = (...dtypes) => dtypes.map((dtype) => ({ dtype }));

/** Conversions of the dense model, the one of blocks and the merged one. */
const FULL = {
  dense: [
    ...folders('stored', 'f32', 'bf16', 'f16'),
    ...gguf(
      'as-base',
      'f32',
      'f16',
      'bf16',
      'q4_0',
      'q4_1',
      'q5_0',
      'q5_1',
      'q4_k',
      'q6_k',
      'q4_k_m',
    ),
    { format: 'json', encoding: 'base64' },
    ...gguf('q8_0'),
  ],
  blocks: [
    ...folders('f32'),
    ...gguf('as-base', 'f16'),
    { format: 'gguf', type: 'as-base', base: true },
  ],
  merged: [...folders('stored', 'bf16'), ...gguf('f32', 'q8_0', 'q4_k_m')],
};
const SHORT = {
  dense: [
    ...folders('bf16'),
    ...gguf('f16'),
    { format: 'json', encoding: 'base64' },
    ...gguf('q8_0'),
  ],
  blocks: [{ format: 'gguf', type: 'as-base', base: true }],
  merged: [...folders('stored')],
};

export async function exports(arena, tally, { sizes, bound, short }) {
  await arena.with(async (subject) => {
    const found = await subject.do(
      async (s, { sizes, ways }) => {
        const e = await import('/torture/exports.mjs');
        const files = () => s.modelFiles(sizes);
        // The counter includes bytes that are gathered instead of written.
        const small = s.modelFiles({ ...sizes, vocab: 1000 });
        const seen = await e.withModel(small, async (model) => [
          (await model.exportFiles())[0].blob.size,
          (await s.tell('counts')).blobs,
        ]);
        if (!(seen[1] >= seen[0])) throw new Error(`Blobs are not counted: ${seen}`);
        const dense = await e.measured(files(), ways.dense, { kept: true });
        const [, base] = /** @type {[string, File]} */ (dense.last);
        const blocks = await e.measured([base], ways.blocks, { base });
        await dense.removed();
        const merged = await e.measured(files(), ways.merged, {
          mergeAdapter: e.adapterFiles(sizes),
        });
        return { dense: dense.rows, blocks: blocks.rows, merged: merged.rows };
      },
      { sizes, ways: short ? SHORT : FULL },
    );
    const tensor = (4 * sizes.vocab * sizes.hidden) / MIB;
    for (const [model, rows] of Object.entries(found)) {
      for (const { call, grown, blobs, reads, ms, refused, bytes, told } of rows) {
        const fault = `line 32: ${model} model with a tensor of ${tensor} MiB, ${call}`;
        const wrong =
          grown > bound * MIB
            ? [`wasm memory grew by ${(grown / MIB).toFixed(1)} MiB, bound ${bound} MiB`]
            : [];
        if (blobs > PIECE_BYTES) wrong.push(`a Blob of ${blobs} bytes was made`);
        if (reads > PIECE_BYTES) wrong.push(`${reads} bytes were read at once`);
        // A JSON document of this size is refused before anything is written.
        const expected = call.startsWith('json') ? 'export.json.too-large' : undefined;
        if (refused !== expected) wrong.push(`refused as ${refused}`);
        if (call !== 'open' && (bytes !== told || bytes > 0 !== (expected === undefined)))
          wrong.push(`${bytes} bytes written, ${told} in the receipt`);
        tally.add(fault, wrong, ms);
        const rate = bytes
          ? `, ${(bytes / 1e6).toFixed(0)} MB at ${(bytes / 1e3 / ms).toFixed(0)} MB/s`
          : '';
        tally.note(
          fault,
          `wasm memory +${(grown / MIB).toFixed(1)} MiB since the start, largest read ${(reads / MIB).toFixed(1)} MiB, largest Blob ${(blobs / MIB).toFixed(1)} MiB${rate}`,
        );
      }
    }
  });
}

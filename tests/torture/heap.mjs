// Wasm memory remains small for any model: a tensor much larger than the bound is opened, trained, saved, exported, imported, resumed.
import { TINY, differences } from './arena.mjs';

/** Uses weights at an offset beyond the range of wasm's 32-bit words. */
async function behindFourGiB(arena, tally, bound) {
  const fault = 'weights behind 6 GB in one file';
  const sizes = { vocab: 1000, hidden: 64, intermediate: 128, layers: 1, heads: 4, kvHeads: 4 };
  await arena.with(async (subject) => {
    const trained = (towerBytes) =>
      subject.do(
        async (s, { sizes, options }) => {
          const model = await s.tabtune.openModel(s.modelFiles(sizes), { worker: s.workers() });
          const warnings = model.warnings.map(({ code }) => code);
          const trainer = await s.tabtune.Trainer.create({
            model,
            data: { tokens: s.someTokens(200) },
            ...options,
          });
          const losses = (await trainer.step(2)).map(({ loss }) => loss);
          const { wasm, wasmAtStart } = await s.tell('counts');
          await trainer.dispose();
          return { warnings, losses, grown: wasm - wasmAtStart };
        },
        { sizes: { ...sizes, towerBytes }, options: { ...TINY.options, validationFraction: 0 } },
      );
    const plain = await trained(0);
    const large = await trained(6_000_000_000);
    const wrong = [
      ...differences('losses', large.losses, plain.losses),
      ...differences('warnings', large.warnings, ['model.tensor.extra']),
    ];
    if (large.grown > bound * 2 ** 20)
      wrong.push(
        `wasm memory grew by ${(large.grown / 2 ** 20).toFixed(1)} MiB, bound ${bound} MiB`,
      );
    tally.add(fault, wrong);
    tally.note(fault, `wasm +${(large.grown / 2 ** 20).toFixed(1)} MiB, losses as without`);
  });
}

/** Reads a file that is 8 bytes longer than wasm's 32-bit words can count, to its end. */
async function beyondFourGiB(arena, tally) {
  const fault = 'a file of 2³² + 8 bytes is read to its end';
  await arena.with(async (subject) => {
    const found = await subject.do(async (s) => {
      const header = (length) =>
        JSON.stringify({
          w: { dtype: 'F32', shape: [length / 4], data_offsets: [0, length] },
        }).padEnd(88);
      const total = 2 ** 32 + 8;
      const length = total - 8 - header(2 ** 32).length;
      const front = new DataView(new ArrayBuffer(8));
      front.setBigUint64(0, BigInt(header(length).length), true);
      const zeros = new Blob([new Uint8Array(64 << 20)]);
      // The last four bytes are a NaN, which only a reader that reaches the end can count.
      const body = [
        ...Array(Math.floor((length - 4) / zeros.size)).fill(zeros),
        zeros.slice(0, (length - 4) % zeros.size),
        new Uint8Array([0, 0, 192, 127]),
      ];
      const file = new File([front.buffer, header(length), ...body], 'large.safetensors');
      const { ok, value, message, ms } = await s.settled(
        s.tabtune.inspectFiles(file, { read: true }),
      );
      return { size: file.size, report: ok ? JSON.stringify(value.files[0]) : message, ms };
    });
    const wrong = [
      ...differences('size', found.size, 2 ** 32 + 8),
      ...(found.report.includes('non-finite')
        ? []
        : [`the last element was not seen: ${found.report.slice(0, 300)}`]),
    ];
    tally.add(fault, wrong, found.ms);
  });
}

export async function heap(arena, tally, { sizes, bound, optimizer, beyond = false }) {
  if (beyond) {
    await behindFourGiB(arena, tally, bound);
    await beyondFourGiB(arena, tally);
  }
  await arena.with(async (subject) => {
    const found = await subject.do(
      async (s, { sizes, options }) => {
        const grown = [];
        const rates = {};
        const note = async (call, ms, bytes) => {
          const { wasm, wasmAtStart, reads, hashed, stored } = await s.tell('counts');
          grown.push([call, wasm - wasmAtStart, Math.round(ms), reads]);
          if (bytes) rates[call] = [bytes / 1e6 / (ms / 1000), hashed, stored];
          await s.tell('reset');
        };
        const timed = async (call, work, bytes) => {
          const from = performance.now();
          const result = await work();
          await note(call, performance.now() - from, bytes?.(result));
          return result;
        };
        const files = s.modelFiles(sizes);
        const tokens = s.someTokens(64);
        const model = await timed('open', () =>
          s.tabtune.openModel(files, { worker: s.workers() }),
        );
        const trainer = await timed('create', () =>
          s.tabtune.Trainer.create({ model, data: { tokens }, ...options }),
        );
        s.adopt(trainer);
        await timed('step', () => trainer.step(1));
        const saved = await timed(
          'save',
          () => trainer.save(),
          ({ bytes }) => bytes,
        );
        await timed('export', () => trainer.exportFiles());
        const file = await timed('export of the checkpoint', () =>
          trainer.checkpoints.exportFile(),
        );
        const [next] = (await trainer.step(1)).map(({ loss }) => loss);
        const run = trainer.runId;
        await trainer.dispose();
        await timed(
          'resume',
          () => s.resume({ run }),
          () => saved.bytes,
        );
        const [again] = await s.step(1);
        const imported = await timed(
          'import',
          () => s.current().checkpoints.importFile(file),
          () => saved.bytes,
        );
        await s.current().dispose();
        const runs = await s.runs();
        await runs.remove(imported.run);
        await runs.remove(run);
        return { grown, rates, next, again, bytes: saved.bytes };
      },
      {
        sizes,
        options: {
          ...TINY.options,
          validationFraction: 0,
          gradientAccumulationSteps: 1,
          optimizer,
        },
      },
    );
    for (const [call, growth, ms, reads] of found.grown) {
      const wrong =
        growth > bound * 2 ** 20
          ? [`wasm memory grew by ${(growth / 2 ** 20).toFixed(1)} MiB, bound ${bound} MiB`]
          : [];
      if (call === 'resume' && found.next !== found.again) wrong.push('the resumed run is another');
      tally.add(`wasm memory: ${call}`, wrong, ms);
      tally.note(
        `wasm memory: ${call}`,
        `+${(growth / 2 ** 20).toFixed(1)} MiB with a tensor of ${(sizes.vocab * sizes.hidden) / 2 ** 18} MiB, largest read ${(reads / 2 ** 20).toFixed(1)} MiB`,
      );
    }
    const [rate, hashed, stored] = found.rates.save;
    const perByte = hashed / stored;
    tally.add(
      'bytes hashed per saved byte',
      perByte > 1.01 + (8 << 20) / stored || perByte < 0.99 ? [`${perByte.toFixed(3)}`] : [],
    );
    tally.note(
      'bytes hashed per saved byte',
      `${perByte.toFixed(2)}; save ${rate.toFixed(0)} MB/s, resume ${found.rates.resume[0].toFixed(0)} MB/s, ${found.bytes} bytes`,
    );
  });
}

// Long runs and many starts: GPU memory, wasm memory and the page's heap do not grow.
import { TINY, differences } from './arena.mjs';

/** Steps after which nothing new is kept on the GPU, and after which wasm and the page's heap have reached their size. */
const EARLY = 20;
const WARM = 120;
/**
 * Number of small buffers in flight when they are counted: a read's, and those that are collected later. The pool's own figure has no such tolerance.
 */
const ON_THEIR_WAY = 8;

/** Returns the bytes of the page's JavaScript heap and of its worker's after a collection. */
async function heapOf(subject) {
  const devtools = await subject.page.context().newCDPSession(subject.page);
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  await devtools.detach();
  return usedSize;
}

export async function soak(arena, tally, { steps, cycles }) {
  const fault = `${steps} steps`;
  await arena.with(async (subject) => {
    const at = async (count) => {
      const facts = await subject.do(async (s, count) => {
        // Only live objects count: the contents of the timeline would grow.
        if (count > 0) await s.step(count);
        s.timeline.length = 0;
        const { gpuBytes } = await s.current().info();
        return { gpu: gpuBytes, ...(await s.tell('counts')) };
      }, count);
      return { ...facts, heap: await heapOf(subject) };
    };
    await subject.do((s, setting) => s.create(setting), {
      ...TINY,
      options: { ...TINY.options, logEvery: 8 },
    });
    const early = await at(EARLY);
    const middle = await at(WARM - EARLY);
    const end = await at(steps - WARM);
    // Fewer bytes are not growth: unused pages are returned.
    const wrong = differences('wasm bytes', end.wasm, middle.wasm);
    if (end.gpu > early.gpu) wrong.push(`GPU bytes in the pool ${early.gpu}, then ${end.gpu}`);
    if (end.buffers > early.buffers + ON_THEIR_WAY || end.bytes > 1.02 * early.bytes)
      wrong.push(
        `GPU buffers ${early.buffers} of ${early.bytes} bytes became ${end.buffers} of ${end.bytes}`,
      );
    if (end.heap > middle.heap + (2 << 20))
      wrong.push(`the page's heap grew by ${end.heap - middle.heap} bytes`);
    tally.add(fault, wrong);
    tally.note(
      fault,
      `GPU ${early.bytes} bytes in ${early.buffers} buffers at step 20, ${end.bytes} in ${end.buffers} at the end, wasm ${(end.wasm / 2 ** 20).toFixed(1)} MiB, heap ${((end.heap - middle.heap) / 1024).toFixed(0)} KiB more`,
    );
  });
  await cyclesOf(arena, tally, cycles);
}

/** Repeats start, abort in the start, start again, dispose: nothing of it remains. */
async function cyclesOf(arena, tally, cycles) {
  const fault = 'start, abort, start, dispose';
  const truth = await arena.truth(TINY, 2);
  await arena.with(async (subject) => {
    const base = [];
    for (let cycle = 0; cycle < cycles; cycle++) {
      const result = await subject.do(
        async (s, { setting, delay }) => {
          const model = await s.tabtune.newModel(
            setting.shape,
            { text: setting.text },
            { worker: s.workers() },
          );
          const controller = new AbortController();
          setTimeout(() => controller.abort(), delay);
          const first = await s.settled(
            s.tabtune.Trainer.create({
              model,
              data: { text: setting.text },
              ...setting.options,
              signal: controller.signal,
            }),
          );
          const trainer = first.ok
            ? first.value
            : await s.tabtune.Trainer.create({
                model,
                data: { text: setting.text },
                ...setting.options,
              });
          const losses = (await trainer.step(2)).map(({ loss }) => loss);
          await trainer.dispose();
          const { value, ...how } = first;
          void value;
          return { how, losses };
        },
        { setting: TINY, delay: 20 + 60 * (cycle % 7) },
      );
      const wrong = differences('losses', result.losses, truth.losses.slice(1, 3));
      if (!result.how.ok && result.how.name !== 'AbortError')
        wrong.push(`the aborted start: ${result.how.code} ${result.how.message}`);
      tally.add(fault, wrong, result.how.ms);
      await new Promise((done) => setTimeout(done, 200));
      base.push({ gpu: arena.browser.gpuBytes(), heap: await heapOf(subject) });
    }
    const [first, last] = [base[1], base[base.length - 1]];
    const wrong = [];
    if (last.heap > first.heap + (2 << 20))
      wrong.push(`the page's heap grew by ${last.heap - first.heap} bytes`);
    if (last.gpu > first.gpu + (32 << 20))
      wrong.push(`the GPU process grew from ${first.gpu} to ${last.gpu} bytes`);
    tally.add('nothing stays of disposed trainers', wrong);
    tally.note(
      'nothing stays of disposed trainers',
      `GPU process ${((last.gpu - first.gpu) / 2 ** 20).toFixed(1)} MiB, heap ${((last.heap - first.heap) / 1024).toFixed(0)} KiB more after ${cycles}`,
    );
  });
}

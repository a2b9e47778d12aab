// node tests/bench/optimizers.mjs [ELEMENTS]: one step of each optimizer on a matrix, compared with a copy of as many bytes, in Chromium, and each of
// its kernels separately. The launches are those that `tabtune-dev bench optimizers` makes natively, repeated with the same WGSL, parameters and buffer
// sizes.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { stems } from '../../shaders/stems.mjs';
import { environment, root } from '../../web/toolchain.mjs';
import { Browser } from '../browser/chromium.mjs';
import { serve } from '../browser/site.mjs';

const elements = process.argv[2] ?? '1048576';
const REPETITIONS = 9;

const args = [
  'run',
  '--locked',
  '-q',
  '--bin',
  'tabtune-dev',
  '--',
  'bench',
  'optimizers',
  '--elements',
  elements,
  '--json',
];
const output = execFileSync('cargo', args, {
  cwd: root,
  env: environment,
  encoding: 'utf8',
  maxBuffer: 1 << 26,
});
const rows = output
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));
const source = (name) => readFileSync(/** @type {string} */ (stems.get(name)), 'utf8');
const sources = Object.assign(
  { u32_copy: source('common') + source('u32_copy') },
  ...rows.map(({ texts }) => texts),
);

/** Runs in the page: returns the median milliseconds of each list of launches, after two that do not count; the lists take turns. */
async function time({ lists, sources, repetitions }) {
  const adapter = /** @type {GPUAdapter} */ (await navigator.gpu.requestAdapter());
  const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits;
  const device = await adapter.requestDevice({
    requiredLimits: { maxStorageBufferBindingSize, maxBufferSize },
  });
  const pipelines = new Map();
  for (const [name, code] of Object.entries(sources)) {
    const module = device.createShaderModule({ code });
    pipelines.set(
      name,
      await device.createComputePipelineAsync({
        layout: 'auto',
        compute: { module, entryPoint: 'main' },
      }),
    );
  }
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST;
  // Every word is 0.5 as f32 and as two bf16: no value that hardware treats specially.
  const filled = (words) => {
    const buffer = device.createBuffer({ size: Math.max(4 * words, 4), usage });
    device.queue.writeBuffer(buffer, 0, new Uint32Array(words).fill(0x3f003f00));
    return buffer;
  };
  const prepared = lists.map((launches) => {
    const shared = new Map();
    return launches.map(([name, words, params, groups]) => {
      const last = device.createBuffer({
        size: Math.max(4 * (params.length + (params.length % 2)), 8),
        usage,
      });
      device.queue.writeBuffer(last, 0, new Uint32Array(params));
      const buffers = words.map((count, index) => {
        const key = `${count} ${index}`;
        if (!shared.has(key)) shared.set(key, filled(count));
        return shared.get(key);
      });
      const pipeline = pipelines.get(name);
      const entries = [...buffers, last].map((buffer, binding) => ({
        binding,
        resource: { buffer },
      }));
      const x = Math.min(groups, 65535);
      return {
        pipeline,
        group: device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }),
        x,
        y: Math.ceil(groups / x),
      };
    });
  });
  const once = async (launches) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const { pipeline, group, x, y } of launches) {
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(x, y);
    }
    pass.end();
    const started = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    return performance.now() - started;
  };
  const times = lists.map(() => []);
  for (let turn = 0; turn < repetitions + 2; turn++) {
    for (const [index, launches] of prepared.entries()) {
      const took = await once(launches);
      if (turn >= 2) times[index].push(took);
    }
  }
  const { vendor, architecture, device: name } = adapter.info;
  return {
    adapter: [vendor, architecture, name].filter(Boolean).join(' '),
    times: times.map((list) => list.toSorted((a, b) => a - b)[list.length >> 1]),
  };
}

const copies = rows.map(({ bytes }) => {
  const words = Math.floor(bytes / 8);
  return [['u32_copy', [words, words], [words, 0, 0], Math.ceil(words / 256)]];
});
const site = await serve();
const browser = await Browser.launch();
try {
  const { page, record } = await browser.open(`${site.url}/`);
  const steps = rows.flatMap((row, index) => [row.launches, copies[index]]);
  const kernels = rows.flatMap(({ optimizer, precision, launches }) =>
    launches.length > 1 ? launches.map((launch) => [`${optimizer} ${precision}`, launch]) : [],
  );
  const lists = [...steps, ...kernels.map(([, launch]) => [launch])];
  const { adapter, times } = await page.evaluate(time, {
    lists,
    sources,
    repetitions: REPETITIONS,
  });
  if (record.errors.length > 0) throw new Error(record.errors.join('\n'));
  console.log(`${adapter}, ${elements} elements, median of ${REPETITIONS}`);
  console.log(
    '| optimizer | dispatches | bytes moved, MB | time, ms | GB/s | copy, GB/s | ratio |\n|---|---|---|---|---|---|---|',
  );
  for (const [index, { optimizer, precision, bytes, dispatches }] of rows.entries()) {
    const [own, copy] = [times[2 * index], times[2 * index + 1]];
    const rate = (ms) => (bytes / ms / 1e6).toFixed(2);
    console.log(
      `| ${optimizer} ${precision} | ${dispatches} | ${(bytes / 1e6).toFixed(1)} | ${own.toFixed(0)} | ${rate(own)} | ${rate(copy)} | ${(copy / own).toFixed(3)} |`,
    );
  }
  console.log('\n| optimizer | kernel | time alone, ms |\n|---|---|---|');
  for (const [index, [optimizer, [name]]] of kernels.entries())
    console.log(`| ${optimizer} | ${name} | ${times[steps.length + index].toFixed(1)} |`);
} finally {
  await browser.close();
  await site.close();
}

// Runs in the page: recorded kernel cases on this browser's WebGPU, compared with the results of their twins natively.
const POISON = 0x7fc0dead;
const MOST_GROUPS = 65535;
const asFloat = new Float32Array(1);
const asWord = new Uint32Array(asFloat.buffer);

function floatOf(word) {
  asWord[0] = word;
  return asFloat[0];
}

/** Returns the largest difference relative to the RMS of `expected`; infinite if only one of two values is finite. */
function difference(found, expected) {
  let squares = 0;
  let finite = 0;
  for (const word of expected) {
    const value = floatOf(word);
    if (!Number.isFinite(value)) continue;
    squares += value * value;
    finite++;
  }
  const rms = Math.max(Math.sqrt(squares / Math.max(finite, 1)), 1e-30);
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    if (found[i] === expected[i]) continue;
    const [f, e] = [floatOf(found[i]), floatOf(expected[i])];
    const poisoned = found[i] === POISON || expected[i] === POISON;
    if (Number.isFinite(f) && Number.isFinite(e))
      largest = Math.max(largest, Math.abs(f - e) / rms);
    else if (poisoned || !(Number.isNaN(f) && Number.isNaN(e))) return Infinity;
  }
  return largest;
}

/** Pipelines by their shader texts: several checks have the same, and compiling takes most of the time. */
const pipelines = new Map();

function pipelineOf(device, code) {
  if (!pipelines.has(code)) {
    const module = device.createShaderModule({ code });
    pipelines.set(
      code,
      device.createComputePipelineAsync({
        layout: 'auto',
        compute: { module, entryPoint: 'main' },
      }),
    );
  }
  return pipelines.get(code);
}

function storage(device, words) {
  const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
  const buffer = device.createBuffer({ size: Math.max(words.byteLength, 4), usage });
  device.queue.writeBuffer(buffer, 0, words);
  return buffer;
}

async function runCase(device, pipeline, test, wordsOf) {
  const params = new Uint32Array(test.params.length + (test.params.length % 2));
  params.set(test.params);
  const buffers = [
    ...test.buffers.map((place) => storage(device, wordsOf(place))),
    storage(device, params),
  ];
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  const bindGroup = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, bindGroup);
  const x = Math.min(test.groups, MOST_GROUPS);
  pass.dispatchWorkgroups(x, Math.ceil(test.groups / x));
  pass.end();
  const written = buffers.slice(0, -1).filter((_, index) => test.written[index]);
  const reads = written.map((buffer) => {
    const read = device.createBuffer({
      size: buffer.size,
      usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
    encoder.copyBufferToBuffer(buffer, 0, read, 0, buffer.size);
    return read;
  });
  device.queue.submit([encoder.finish()]);
  let largest = 0;
  for (const [index, read] of reads.entries()) {
    await read.mapAsync(GPUMapMode.READ);
    const expected = wordsOf(test.expected[index]);
    largest = Math.max(
      largest,
      difference(new Uint32Array(read.getMappedRange()).subarray(0, expected.length), expected),
    );
    read.destroy();
  }
  buffers.forEach((buffer) => buffer.destroy());
  return largest;
}

let opened;

/** Opens one device for all cases; each case has its own buffers and pipelines. */
async function open() {
  const adapter = /** @type {GPUAdapter} */ (await navigator.gpu.requestAdapter());
  // No limits are requested: every kernel must run on the guaranteed minimum.
  return adapter.requestDevice();
}

/**
 * Returns the largest differences of the kernel over the cases of one recorded check (over one of them, if another check has the same), if `mutated`
 * those of its mutant from the case that caught it natively up to the one that catches it here, and GPU errors.
 */
export async function replay(name, mutated) {
  const [manifest, bytes] = await Promise.all([
    fetch(`/cases/${name}.json`).then((found) => found.json()),
    fetch(`/cases/${name}.bin`).then((found) => found.arrayBuffer()),
  ]);
  const words = new Uint32Array(bytes);
  const wordsOf = ({ start, length }) => words.subarray(start, start + length);
  const device = await (opened ??= open());
  const errors = [];
  const hear = (event) => errors.push(event.error.message);
  device.addEventListener('uncapturederror', hear);
  const { kernel, bound, caught, again, cases } = manifest;
  const [source, mutant] = /** @type {number[][]} */ ([[], []]);
  // Two compilers at once.
  const [original, changed] = await Promise.all(
    [manifest.source, ...(mutated ? [manifest.mutant] : [])].map((code) =>
      pipelineOf(device, code),
    ),
  );
  for (const test of again ? [cases[caught]] : cases)
    source.push(await runCase(device, original, test, wordsOf));
  for (const test of mutated ? [...cases.slice(caught), ...cases.slice(0, caught)] : []) {
    mutant.push(await runCase(device, changed, test, wordsOf));
    if (mutant[mutant.length - 1] > bound) break;
  }
  // An error of the last submission is reported after it.
  await device.queue.onSubmittedWorkDone();
  device.removeEventListener('uncapturederror', hear);
  // JSON has no infinity, so it is passed to the test as text.
  return { kernel, bound, errors, source: source.map(String), mutant: mutant.map(String) };
}

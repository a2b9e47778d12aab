// Puts each dispatch into a compute pass of its own between two timestamps. Before any other script of a worker.
const MOST_QUERIES = 4096; // of one set
const codes = new WeakMap();
const kernels = new WeakMap();
let device;
let set;
let stamped = [];
let waitedMs = 0;

const { createShaderModule, createComputePipeline, createComputePipelineAsync } = GPUDevice.prototype;
const { beginComputePass } = GPUCommandEncoder.prototype;

GPUDevice.prototype.createShaderModule = function (descriptor) {
  device = this;
  const module = createShaderModule.call(this, descriptor);
  codes.set(module, descriptor.code);
  return module;
};
GPUDevice.prototype.createComputePipeline = function (descriptor) {
  const pipeline = createComputePipeline.call(this, descriptor);
  kernels.set(pipeline, codes.get(descriptor.compute.module));
  return pipeline;
};
GPUDevice.prototype.createComputePipelineAsync = async function (descriptor) {
  const pipeline = await createComputePipelineAsync.call(this, descriptor);
  kernels.set(pipeline, codes.get(descriptor.compute.module));
  return pipeline;
};

const { mapAsync } = GPUBuffer.prototype;
/** The only wait of a step: for what the GPU has to finish before its loss can be read. */
GPUBuffer.prototype.mapAsync = async function (...given) {
  const begun = performance.now();
  await mapAsync.apply(this, given);
  waitedMs += performance.now() - begun;
};

/** Stands for a compute pass: every dispatch becomes a pass. */
class StampedPass {
  #encoder;
  #pipeline;
  #groups = new Map();

  constructor(encoder) {
    this.#encoder = encoder;
  }
  setPipeline(pipeline) {
    this.#pipeline = pipeline;
  }
  setBindGroup(index, ...given) {
    this.#groups.set(index, given);
  }
  dispatchWorkgroups(...counts) {
    set ??= device.createQuerySet({ type: 'timestamp', count: MOST_QUERIES });
    const at = stamped.length * 2;
    const timestampWrites = { querySet: set, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 };
    const pass = beginComputePass.call(this.#encoder, at < MOST_QUERIES ? { timestampWrites } : {});
    if (at < MOST_QUERIES) stamped.push(kernels.get(this.#pipeline) ?? '');
    pass.setPipeline(this.#pipeline);
    for (const [index, given] of this.#groups) pass.setBindGroup(index, ...given);
    pass.dispatchWorkgroups(...counts);
    pass.end();
  }
  end() {
    this.#groups.clear();
  }
}
GPUCommandEncoder.prototype.beginComputePass = function () {
  return new StampedPass(this);
};

/** Milliseconds of each dispatch since the last call, with its kernel's source, and those spent waiting. */
async function take() {
  const [taken, waited] = [stamped, waitedMs];
  if (taken.length === 0) return { waited, dispatches: [] };
  const bytes = taken.length * 16;
  const resolved = device.createBuffer({ size: bytes, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
  const read = device.createBuffer({ size: bytes, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const encoder = device.createCommandEncoder();
  encoder.resolveQuerySet(set, 0, taken.length * 2, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, read, 0, bytes);
  device.queue.submit([encoder.finish()]);
  stamped = [];
  waitedMs = 0;
  await mapAsync.call(read, GPUMapMode.READ);
  const stamps = new BigUint64Array(read.getMappedRange());
  return { waited, dispatches: taken.map((code, i) => ({ code, ms: Number(stamps[2 * i + 1] - stamps[2 * i]) / 1e6 })) };
}

const channel = new BroadcastChannel('bench-profile');
channel.onmessage = async ({ data }) => data === 'profile?' && channel.postMessage(await take());

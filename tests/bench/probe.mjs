// Counts a page's use of WebGPU: dispatches, and bytes of buffers created and not destroyed; and WebAssembly's memory, which the browser's own heap
// statistics leave out. Must run before any other script of a page or worker.
const counts = { dispatches: 0, bytes: 0, peakBytes: 0, wasmBytes: 0 };
const memories = new Set();
/** Texts of the kernels. */
const texts = [];
const sizes = new WeakMap();
/** Releases an unreferenced buffer, which the browser may free. */
const collected = new FinalizationRegistry((held) => release(held));

function release(held) {
  counts.bytes -= held.size;
  held.size = 0;
}

function after(type, method, what) {
  const original = type.prototype[method];
  type.prototype[method] = function (...given) {
    const result = original.apply(this, given);
    what(this, given, result);
    return result;
  };
}

after(GPUDevice, 'createBuffer', (_device, [{ size }], buffer) => {
  const held = { size };
  sizes.set(buffer, held);
  collected.register(buffer, held);
  counts.bytes += size;
  counts.peakBytes = Math.max(counts.peakBytes, counts.bytes);
});
after(GPUBuffer, 'destroy', (buffer) => sizes.has(buffer) && release(sizes.get(buffer)));
after(GPUDevice, 'createShaderModule', (_device, [{ code }]) => texts.push(code));
for (const method of ['dispatchWorkgroups', 'dispatchWorkgroupsIndirect'])
  after(GPUComputePassEncoder, method, () => counts.dispatches++);

for (const method of ['instantiate', 'instantiateStreaming']) {
  const original = WebAssembly[method];
  WebAssembly[method] = async (...given) => {
    const result = await original.apply(WebAssembly, given);
    const exported = Object.values((result.instance ?? result).exports);
    const imported = Object.values(given[1] ?? {}).flatMap((module) => Object.values(module));
    [...exported, ...imported].forEach(
      (each) => each instanceof WebAssembly.Memory && memories.add(each),
    );
    return result;
  };
}

function read() {
  const wasmBytes = [...memories].reduce((sum, memory) => sum + memory.buffer.byteLength, 0);
  return { ...counts, wasmBytes };
}

globalThis.__gpu = read;
// A worker answers its page through a separate channel, since its messages belong to the library.
if (globalThis.document === undefined) {
  const channel = new BroadcastChannel('bench-gpu');
  const answers = { 'counts?': read, 'texts?': () => texts };
  channel.onmessage = ({ data }) => data in answers && channel.postMessage(answers[data]());
}

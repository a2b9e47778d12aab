// Runs in the worker before the package's script: observes its use of GPU, storage and wasm, and breaks it on request.
const plan = JSON.parse(new URL(location.href).searchParams.get('plan') ?? '{}');
const channel = new BroadcastChannel(`faults ${plan.id ?? ''}`);
const now = () => performance.timeOrigin + performance.now();

const counts = {
  submits: 0,
  maps: 0,
  puts: 0,
  buffers: 0,
  bytes: 0,
  mostBytes: 0,
  hashed: 0,
  stored: 0,
  reads: 0,
  blobs: 0,
};
const violations = [];
const databases = new Set();
/** Sizes of the buffers that are neither destroyed nor collected. */
const alive = new Map();
let device;
let instance;
/** Actions at the n-th call of a kind, counted from the arming: `{ submit | map | put | read: n, do }`. */
let armed = plan.at ? [plan.at] : [];

const ACTIONS = {
  destroy: () => device.destroy(),
  panic: () => {
    if (!instance.exports.panicForTest)
      throw new Error('the released core has no panic for tests: TABTUNE_CORE=quick');
    instance.exports.panicForTest();
  },
  oversized: () =>
    void device.createBuffer({
      size: Math.ceil(device.limits.maxBufferSize / 4) * 4 + 1024,
      usage: GPUBufferUsage.STORAGE,
    }),
  shader: () => void device.createShaderModule({ code: 'fn main( {' }),
  // The browser would throw an error of this kind at the end of the transaction.
  quota: () => {
    throw new DOMException('no room, as arranged', 'QuotaExceededError');
  },
  closeDatabase: () => databases.forEach((database) => database.close()),
};

function fire(action) {
  channel.postMessage({ fired: action, at: now() });
  ACTIONS[action]();
}

function passed(kind) {
  for (const each of [...armed]) {
    if (!(kind in each) || --each[kind] > 0) continue;
    armed = armed.filter((other) => other !== each);
    fire(each.do);
  }
}

/** Replaces a method; `around` gets the original, bound, and its arguments. */
function wrap(owner, name, around) {
  const original = owner?.prototype[name];
  if (!original) return;
  owner.prototype[name] = function (...given) {
    return around.call(this, (...other) => original.apply(this, other), ...given);
  };
}

// Limits that WebGPU guarantees everywhere; a device that requests nothing gets them.
const MINIMUM = {
  maxTextureDimension1D: 8192,
  maxTextureDimension2D: 8192,
  maxTextureDimension3D: 2048,
  maxTextureArrayLayers: 256,
  maxBindGroups: 4,
  maxBindGroupsPlusVertexBuffers: 24,
  maxBindingsPerBindGroup: 1000,
  maxDynamicUniformBuffersPerPipelineLayout: 8,
  maxDynamicStorageBuffersPerPipelineLayout: 4,
  maxSampledTexturesPerShaderStage: 16,
  maxSamplersPerShaderStage: 16,
  maxStorageBuffersPerShaderStage: 8,
  maxStorageTexturesPerShaderStage: 4,
  maxUniformBuffersPerShaderStage: 12,
  maxUniformBufferBindingSize: 65536,
  maxStorageBufferBindingSize: 128 << 20,
  minUniformBufferOffsetAlignment: 256,
  minStorageBufferOffsetAlignment: 256,
  maxVertexBuffers: 8,
  maxBufferSize: 256 << 20,
  maxVertexAttributes: 16,
  maxVertexBufferArrayStride: 2048,
  maxInterStageShaderVariables: 16,
  maxColorAttachments: 8,
  maxColorAttachmentBytesPerSample: 32,
  maxComputeWorkgroupStorageSize: 16384,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupSizeY: 256,
  maxComputeWorkgroupSizeZ: 64,
  maxComputeWorkgroupsPerDimension: 65535,
};

function shadow(prototype, name, change) {
  const { get } = /** @type {Required<PropertyDescriptor>} */ (
    Object.getOwnPropertyDescriptor(prototype, name)
  );
  Object.defineProperty(prototype, name, {
    configurable: true,
    get() {
      return change(get.call(this));
    },
  });
}

if (typeof GPUAdapter !== 'undefined') {
  if (plan.minimum) {
    const least = (limits) => {
      const shown = {};
      for (const key in limits) shown[key] = MINIMUM[key] ?? limits[key];
      return shown;
    };
    shadow(GPUAdapter.prototype, 'limits', least);
  }
  if (plan.hide)
    shadow(
      GPUAdapter.prototype,
      'features',
      (features) => new Set([...features].filter((name) => name !== plan.hide)),
    );
  wrap(GPUAdapter, 'requestDevice', async (original, descriptor = {}) => {
    const asked = [...(descriptor.requiredFeatures ?? [])];
    if (plan.hide && asked.includes(plan.hide))
      throw new TypeError(`the feature ${plan.hide} is not supported`);
    for (const [name, value] of Object.entries(
      plan.minimum ? (descriptor.requiredLimits ?? {}) : {},
    )) {
      const worse = name.startsWith('min') ? value < MINIMUM[name] : value > MINIMUM[name];
      if (worse)
        throw new DOMException(`${name} ${value} is beyond ${MINIMUM[name]}`, 'OperationError');
    }
    device = await original(plan.minimum ? { ...descriptor, requiredLimits: {} } : descriptor);
    if (plan.hide) counts.hidden = !device.features.has(plan.hide);
    return device;
  });
  if (plan.noAdapter) wrap(GPU, 'requestAdapter', async () => null);
  wrap(GPUQueue, 'submit', (original, ...given) => {
    counts.submits++;
    passed('submit');
    return original(...given);
  });
  wrap(GPUBuffer, 'mapAsync', (original, ...given) => {
    counts.maps++;
    const mapped = original(...given);
    passed('map');
    return mapped;
  });
  const gone = (key) => {
    const size = alive.get(key);
    if (size === undefined) return;
    alive.delete(key);
    counts.buffers--;
    counts.bytes -= size;
  };
  const collected = new FinalizationRegistry(gone);
  const keys = new WeakMap();
  let nextKey = 0;
  wrap(GPUDevice, 'createBuffer', (original, descriptor) => {
    const buffer = original(descriptor);
    const key = nextKey++;
    keys.set(buffer, key);
    alive.set(key, descriptor.size);
    collected.register(buffer, key);
    counts.buffers++;
    counts.bytes += descriptor.size;
    counts.mostBytes = Math.max(counts.mostBytes, counts.bytes);
    return buffer;
  });
  wrap(
    GPUBuffer,
    'destroy',
    /** @this {GPUBuffer} */ function (original) {
      gone(keys.get(this));
      return original();
    },
  );
}

for (const name of ['instantiate', 'instantiateStreaming']) {
  const original = WebAssembly[name];
  WebAssembly[name] = async (...given) => {
    const made = await original.apply(WebAssembly, given);
    instance = made.instance ?? made;
    counts.wasmAtStart = instance.exports.memory.buffer.byteLength;
    return made;
  };
}

// Records the largest Blob that is made of bytes or of other Blobs; a slice of one is neither.
globalThis.Blob = new Proxy(Blob, {
  construct(target, given, asked) {
    const made = Reflect.construct(target, given, asked);
    counts.blobs = Math.max(counts.blobs, made.size);
    return made;
  },
});

wrap(SubtleCrypto, 'digest', (original, algorithm, bytes) => {
  counts.hashed += bytes.byteLength;
  return original(algorithm, bytes);
});
wrap(
  IDBObjectStore,
  'put',
  /** @this {IDBObjectStore} */ function (original, ...given) {
    if (this.name === 'chunks') {
      counts.puts++;
      counts.stored += given[0]?.byteLength ?? 0;
      passed('put');
    }
    return original(...given);
  },
);
wrap(IDBFactory, 'open', (original, ...given) => {
  const request = original(...given);
  request.addEventListener('success', () => databases.add(request.result));
  return request;
});
if (typeof FileReaderSync !== 'undefined') {
  wrap(FileReaderSync, 'readAsArrayBuffer', (original, blob) => {
    counts.reads = Math.max(counts.reads, blob.size);
    passed('read');
    return original(blob);
  });
}

addEventListener('securitypolicyviolation', (event) =>
  violations.push(`${event.violatedDirective} ${event.blockedURI}`),
);

const COMMANDS = {
  arm: ({ at }) => void armed.push(at),
  fire: ({ action }) => fire(action),
  counts: () => ({ ...counts, wasm: instance?.exports.memory.buffer.byteLength ?? 0 }),
  reset: () =>
    Object.assign(counts, {
      submits: 0,
      maps: 0,
      puts: 0,
      hashed: 0,
      stored: 0,
      reads: 0,
      blobs: 0,
      mostBytes: counts.bytes,
    }),
  sizes: () => {
    const found = {};
    for (const size of alive.values()) found[size] = (found[size] ?? 0) + 1;
    return found;
  },
  violations: () => [...violations],
  fetch: ({ url }) =>
    fetch(url).then(
      () => 'answered',
      (error) => error.name,
    ),
};

channel.onmessage = async ({ data }) => {
  if (data.command === undefined) return;
  // A panic never returns, so the request is acknowledged first.
  if (data.command === 'fire') channel.postMessage({ id: data.id, reply: null });
  const reply = await COMMANDS[data.command](data);
  if (data.command !== 'fire') channel.postMessage({ id: data.id, reply });
};

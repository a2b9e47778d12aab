import { messageOf } from '../protocol/errors.js';
import type { ErrorCode } from '../protocol/errors.js';
import { limited } from '../protocol/limited.js';
import { sentence } from '../protocol/sentence.js';

/** Capabilities of this browser. If it cannot train or cannot save, `help` says in words what to do about it. */
export interface Support {
  /** True if training is possible here. */
  ok: boolean;
  /** Class of the reason why not. */
  code?: Extract<ErrorCode, 'UNSUPPORTED_BROWSER' | 'NO_ADAPTER' | 'LIMIT_EXCEEDED'>;
  /** Advice for the user, as sentences. */
  help?: string;
  /** The GPU; `software` is true if the CPU takes its place. */
  adapter?: { vendor: string; architecture: string; description: string; software: boolean };
  /** Optional features of WebGPU that the GPU has. */
  features: string[];
  /** Its limits in bytes; undefined without a GPU. */
  limits: { maxBufferSize: number; maxStorageBufferBindingSize: number } | undefined;
  /** Storage in bytes, as far as the browser reports it. `indexedDb` is true if a database can be opened; without one, runs are trained but not saved. */
  storage: {
    quota: number | undefined;
    usage: number | undefined;
    persisted: boolean | undefined;
    locks: boolean;
    indexedDb: boolean;
  };
}

/** Time limits for the browser to find a GPU, and to report on its storage. */
const ADAPTER_MILLIS = 20_000;
const STORAGE_MILLIS = 3000;
const UNSAVED =
  'This browser stores nothing for this page, so runs cannot be saved here. Allow it, or export what you want to keep.';
/** Minimum that WebGPU guarantees. */
const MIN_STORAGE_BUFFERS = 8;

/** Returns the sentence of a code that needs no values. */
function spokenAs(code: 'browser.insecure' | 'browser.origin'): string {
  const text = sentence(code, {});
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Examines the browser; never throws. */
export async function support(): Promise<Support> {
  const nothing: Support = {
    ok: false,
    features: [],
    limits: undefined,
    storage: {
      quota: undefined,
      usage: undefined,
      persisted: undefined,
      locks: false,
      indexedDb: false,
    },
  };
  try {
    return await look(nothing);
  } catch (thrown) {
    return {
      ...nothing,
      code: 'NO_ADAPTER',
      help: `Requesting the GPU failed: ${messageOf(thrown)}`,
    };
  }
}

async function look(nothing: Support): Promise<Support> {
  const scope: Partial<typeof globalThis> = globalThis;
  if (scope.navigator === undefined || scope.Worker === undefined) {
    return {
      ...nothing,
      code: 'UNSUPPORTED_BROWSER',
      help: 'This is not a browser page. Training runs in a browser tab.',
    };
  }
  const { navigator } = scope;
  const found: Support = { ...nothing, storage: await storageOf(navigator) };
  if (scope.isSecureContext === false)
    return { ...found, code: 'UNSUPPORTED_BROWSER', help: spokenAs('browser.insecure') };
  if (scope.origin === 'null')
    return { ...found, code: 'UNSUPPORTED_BROWSER', help: spokenAs('browser.origin') };
  if (scope.WebAssembly === undefined) {
    return {
      ...found,
      code: 'UNSUPPORTED_BROWSER',
      help: 'This browser lacks WebAssembly, or it is switched off. Allow it for this page, or use a current browser.',
    };
  }
  const gpu: GPU | undefined = navigator.gpu;
  if (gpu === undefined)
    return { ...found, code: 'UNSUPPORTED_BROWSER', help: helpWithoutWebGpu(navigator.userAgent) };
  const adapter = await limited(
    gpu.requestAdapter({ powerPreference: 'high-performance' }),
    ADAPTER_MILLIS,
    () => undefined,
  );
  if (adapter === undefined) {
    return {
      ...found,
      code: 'NO_ADAPTER',
      help: `The browser did not answer within ${ADAPTER_MILLIS / 1000} seconds when it was asked for a GPU: its GPU process may hang. Restart the browser.`,
    };
  }
  if (adapter === null)
    return { ...found, code: 'NO_ADAPTER', help: helpWithoutAdapter(navigator.userAgent) };
  const { vendor, architecture, description } = adapter.info;
  const software =
    `${vendor} ${architecture} ${description}`.toLowerCase().includes('swiftshader') ||
    adapter.info.isFallbackAdapter;
  const { maxBufferSize, maxStorageBufferBindingSize, maxStorageBuffersPerShaderStage } =
    adapter.limits;
  const seen: Support = {
    ...found,
    adapter: { vendor, architecture, description, software },
    features: [...adapter.features].sort(),
    limits: { maxBufferSize, maxStorageBufferBindingSize },
  };
  if (maxStorageBuffersPerShaderStage < MIN_STORAGE_BUFFERS) {
    return {
      ...seen,
      code: 'LIMIT_EXCEEDED',
      help: `This GPU offers ${maxStorageBuffersPerShaderStage} storage buffers per shader, ${MIN_STORAGE_BUFFERS} are needed.`,
    };
  }
  return found.storage.indexedDb ? { ...seen, ok: true } : { ...seen, ok: true, help: UNSAVED };
}

async function storageOf(navigator: Navigator): Promise<Support['storage']> {
  const manager: StorageManager | undefined = navigator.storage;
  const answerOf = <T>(asked: Promise<T> | undefined): Promise<T | undefined> =>
    limited<T | undefined>(
      Promise.resolve(asked).catch(() => undefined),
      STORAGE_MILLIS,
      () => undefined,
    );
  const [estimate, persisted, opens] = await Promise.all([
    answerOf(manager?.estimate?.()),
    answerOf(manager?.persisted?.()),
    answerOf(databaseOpens()),
  ]);
  const locks: LockManager | undefined = navigator.locks;
  return {
    quota: estimate?.quota,
    usage: estimate?.usage,
    persisted,
    locks: locks !== undefined,
    indexedDb: opens === true,
  };
}

/** Returns whether a database can be opened. None is created, because its creation is aborted. */
async function databaseOpens(): Promise<boolean> {
  const request = indexedDB.open('tabtune-look');
  return new Promise((resolve) => {
    request.onupgradeneeded = () => {
      resolve(true);
      request.transaction?.abort();
    };
    request.onerror = (event) => {
      event.preventDefault();
      resolve(false);
    };
  });
}

const onLinux = (agent: string): boolean => /Linux/.test(agent) && !/Android/.test(agent);

function helpWithoutWebGpu(agent: string): string {
  if (/Firefox\//.test(agent) && onLinux(agent))
    return 'This Firefox has no WebGPU, which is off by default on Linux: set dom.webgpu.enabled to true on the page about:config, then restart; or use a current Chrome.';
  if (/Firefox\//.test(agent))
    return 'This Firefox has no WebGPU. It is on by default in Firefox 141 and later on Windows, and 147 and later on Apple silicon (145 on macOS 26); elsewhere use a current Chrome or Edge.';
  if (/iPhone|iPad/.test(agent))
    return 'This iOS or iPadOS has no WebGPU in the browser. Version 26 and later have it.';
  if (/Version\/.*Safari\//.test(agent))
    return 'This Safari has no WebGPU. Safari 26 and later have it; or use a current Chrome.';
  if (/Android/.test(agent))
    return 'This browser has no WebGPU. Chrome 121 and later have it on Android 12 and newer.';
  return 'This browser has no WebGPU. Use Chrome or Edge 113 or later, and keep “Use graphics acceleration when available” switched on in its system settings.';
}

function helpWithoutAdapter(agent: string): string {
  const chrome = /Chrome\//.test(agent);
  const firefox = /Firefox\//.test(agent);
  const steps = chrome
    ? 'Switch on “Use graphics acceleration when available” in the browser’s system settings, update the graphics driver, then restart the browser. The page chrome://gpu says why WebGPU is off.'
    : `Update the graphics driver and the browser, then restart.${firefox ? ' The page about:support says why WebGPU is off.' : ''}`;
  return `WebGPU is there, but it found no usable GPU. ${steps}${chrome && onLinux(agent) ? ' On Linux, Chrome may need to be started with --enable-unsafe-webgpu --enable-features=Vulkan.' : ''}`;
}

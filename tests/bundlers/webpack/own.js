// A worker of the app's own, which imports that of the package for its effects alone.
import { show } from './program.js';

show({ worker: () => new Worker(new URL('./own-worker.js', import.meta.url), { type: 'module' }) });

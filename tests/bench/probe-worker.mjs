// The package's worker with the counters in front.
import './probe.mjs';
import '../../dist/worker.js';

// The package's worker with timestamps around every dispatch.
import './profile-probe.mjs';
import '../../dist/worker.js';

// The package's worker behind a hook that breaks things on request.
import './hook.mjs';
import '/dist/worker.js';

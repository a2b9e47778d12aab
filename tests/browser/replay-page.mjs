// Runs in the page: recorded trajectories through the quick build of the wasm module, which replays them.
const core = await import('/pkg-quick/tabtune.js');
const { __wasm_call_ctors: construct } = await core.default();
// As in `web/src/worker/wasm.ts`: `web/build-wasm.mjs` keeps the linker from calling the constructors on every entry.
construct();
await core.initDevice();

async function bytesOf(name) {
  return new Uint8Array(await (await fetch(`/vectors/${name}`)).arrayBuffer());
}

/** Returns the reports of these vector files. */
export async function replayAll(names) {
  const reports = [];
  for (const name of names) reports.push(await core.replay(name, await bytesOf(name)));
  return reports;
}

/** Returns the report of a file in which one recorded moment is altered. */
export async function replayChanged(name) {
  const recorded = JSON.parse(new TextDecoder().decode(await bytesOf(name)));
  recorded.steps[2].params[1].v.bits[3] = '0001';
  return core.replay(name, new TextEncoder().encode(JSON.stringify(recorded)));
}

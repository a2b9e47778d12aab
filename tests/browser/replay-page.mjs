// Runs in the page: recorded trajectories through the quick build of the wasm module, the one that replays them.
const core = await import('/pkg-quick/tabtune.js');
const { __wasm_call_ctors: construct } = await core.default();
// As `web/src/worker/wasm.ts` does: `web/build-wasm.mjs` keeps the linker from calling them on every entry.
construct();
await core.initDevice();

async function bytesOf(name) {
  return new Uint8Array(await (await fetch(`/vectors/${name}`)).arrayBuffer());
}

/** The reports of these vector files. */
export async function replayAll(names) {
  const reports = [];
  for (const name of names) reports.push(await core.replay(name, await bytesOf(name)));
  return reports;
}

/** The report of a file in which one recorded moment is another. */
export async function replayChanged(name) {
  const recorded = JSON.parse(new TextDecoder().decode(await bytesOf(name)));
  recorded.steps[2].params[1].v.bits[3] = '0001';
  return core.replay(name, new TextEncoder().encode(JSON.stringify(recorded)));
}

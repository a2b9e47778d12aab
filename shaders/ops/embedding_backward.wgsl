// dw[v] += Σ dy[r] over the chain of v. links [V + n] of embedding_links, dy [n, C], dw [V, C]; rows of ids that do not
// occur are unchanged. One thread: one element of dw. Twin: ops/embedding.rs
struct Params {
  n: u32,
  vocab: u32,
  width: u32,
}

@group(0) @binding(0) var<storage, read_write> links: array<u32>;
@group(0) @binding(1) var<storage, read_write> dy: array<f32>;
@group(0) @binding(2) var<storage, read_write> dw: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let n = params.n;
  let width = params.width;
  if (i >= params.vocab * width) {
    return;
  }
  let column = i % width;
  var r = links[i / width];
  if (r >= n) {
    return;
  }
  var sum = 0.0;
  // A chain has at most n rows, whatever its links say.
  for (var rows = 0u; rows < n && r < n; rows++) {
    sum += dy[r * width + column];
    r = links[params.vocab + r];
  }
  dw[i] += sum;
}

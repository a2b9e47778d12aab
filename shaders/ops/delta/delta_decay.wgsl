// Products of the decays within chunks of 64 rows, by their logarithms. sums [n, M, 2]: −Σ g from the chunk's first
// row to this one, as a whole number and the rest below 1, so that differences keep their digits. `start`, `end`
// [n, M]: the decay from before the chunk to this row, and from this row to the chunk's last; 0 across the border of a
// document. gates [n, 2 M] begins with g ≤ 0. One thread: one head of a chunk. Twin: ops/delta/kernels.rs
struct Params {
  n: u32,
  len: u32,
  heads: u32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> gates: array<f32>;
@group(0) @binding(1) var<storage, read_write> starts: array<u32>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;
@group(0) @binding(3) var<storage, read_write> start: array<f32>;
@group(0) @binding(4) var<storage, read_write> end: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let heads = max(params.heads, 1u);
  let chunks = (params.len + 63u) / 64u;
  if (i >= params.n / params.len * chunks * heads) {
    return;
  }
  let h = i % heads;
  let first = i / heads % chunks * 64u;
  let base = i / heads / chunks * params.len + first;
  let rows = min(64u, params.len - first);
  var whole = 0.0;
  var rest = 0.0;
  for (var t = 0u; t < rows; t++) {
    let at = (base + t) * heads + h;
    // Beyond 1e5 the decay is 0 in any case, and the sums stay exact.
    rest += min(-gates[(base + t) * 2u * heads + h], 1e5);
    let carry = floor(rest);
    whole += carry;
    rest -= carry;
    sums[2u * at] = whole;
    sums[2u * at + 1u] = rest;
    start[at] = exp(-(whole + rest));
    if (params.documents != 0u && starts[base + t] >= first) {
      start[at] = 0.0;
    }
  }
  for (var t = 0u; t < rows; t++) {
    let at = (base + t) * heads + h;
    end[at] = exp(-((whole - sums[2u * at]) + (rest - sums[2u * at + 1u])));
    if (params.documents != 0u && first + t < starts[base + rows - 1u]) {
      end[at] = 0.0;
    }
  }
}

// Gradient of short_conv_forward for its rows: dc = dy y, db = dz u, du = dz b with dz_t = Σ_j w_{κ − 1 − j} (dy
// c)_{t + j} over the later rows t + j of the document. x, dx [B·T, 3 C], w [C, κ], starts [B·T], dy [B·T, C]. One
// thread: one element of dy. Twin: ops/short_conv.rs
struct Params {
  n: u32,
  width: u32,
  taps: u32,
  len: u32,
  documents: u32,
}

@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> dy: array<f32>;
@group(0) @binding(4) var<storage, read_write> dx: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

fn first_of(row: u32) -> u32 {
  if (params.documents != 0u) {
    return starts[row];
  }
  return 0u;
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let width = max(params.width, 1u);
  if (i >= params.n * width) {
    return;
  }
  let row = i / width;
  let c = i % width;
  let t = row % params.len;
  let first = first_of(row);
  var sum = 0.0;
  var dz = 0.0;
  for (var j = 0u; j < params.taps; j++) {
    let tap = w[c * params.taps + params.taps - 1u - j];
    if (t >= j && t - j >= first) {
      let at = (row - j) * 3u * width + c;
      sum += tap * (x[at] * x[at + 2u * width]);
    }
    if (t + j < params.len) {
      let later = row + j;
      if (first_of(later) <= t) {
        dz += tap * (dy[later * width + c] * x[later * 3u * width + width + c]);
      }
    }
  }
  let at = row * 3u * width + c;
  dx[at] = dz * x[at + 2u * width];
  dx[at + width] = dy[i] * sum;
  dx[at + 2u * width] = dz * x[at];
}

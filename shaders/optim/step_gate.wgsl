// Decides on the device if a step writes (shaders/README.md, "A step without a wait"). One workgroup.
//   bad = a loss or Σg² is not finite    closed ← closed or bad
//   factor = max_norm > 0 and √Σg² > max_norm ? max_norm/√Σg² : 1
//   row = status, first partial of Σg² that is not finite, Σg², losses
// losses [k], sum [1] = Σg², partials [n] of global_norm; status: 0 taken, 1 bad, 2 closed before.
// Twin: optim/gate.rs
struct Params {
  losses: u32,
  partials: u32,
  row: u32,
  max_norm: f32,
}

@group(0) @binding(0) var<storage, read_write> losses: array<f32>;
@group(0) @binding(1) var<storage, read_write> sum: array<f32>;
@group(0) @binding(2) var<storage, read_write> partials: array<f32>;
@group(0) @binding(3) var<storage, read_write> gate: Gate;
@group(0) @binding(4) var<storage, read_write> rows: array<u32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

// Few threads, since a software adapter compiles a store for each word of workgroup memory.
const SIZE: u32 = 64u;
const NONE: u32 = 0xffffffffu;
// For each thread: its first partial that is not finite, and 1 if a loss or Σg² is not finite.
var<workgroup> found: array<vec2<u32>, SIZE>;

fn is_finite(x: f32) -> bool {
  return is_finite_bits(bitcast<u32>(x));
}

@compute @workgroup_size(SIZE)
fn main(@builtin(local_invocation_index) lane: u32) {
  var own = vec2<u32>(NONE, 0u);
  for (var k = lane; k < params.losses; k += SIZE) {
    own.y |= select(1u, 0u, is_finite(losses[k]));
    rows[params.row + 3u + k] = bitcast<u32>(losses[k]);
  }
  if (!is_finite(sum[0])) {
    own.y = 1u;
    for (var k = lane; k < params.partials && own.x == NONE; k += SIZE) {
      own.x = select(k, NONE, is_finite(partials[k]));
    }
  }
  found[lane] = own;
  workgroupBarrier();
  if (lane == 0u) {
    for (var k = 1u; k < SIZE; k++) {
      own = vec2<u32>(min(own.x, found[k].x), own.y | found[k].y);
    }
    let status = select(own.y, 2u, gate.closed != 0u);
    rows[params.row] = status;
    rows[params.row + 1u] = own.x;
    rows[params.row + 2u] = bitcast<u32>(sum[0]);
    gate.closed = select(0u, 1u, status != 0u);
    let norm = sqrt(sum[0]);
    gate.factor = select(1.0, params.max_norm / norm, params.max_norm > 0.0 && norm > params.max_norm);
  }
}

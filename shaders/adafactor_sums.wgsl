// Adafactor, pass 1 of 4 (optimizers.md §5): row and column sums of q = g² + ε₁ of a matrix [rows, cols], from one read of g.
// A workgroup does a tile of 32 rows × 64 columns: column partials add the rows from top to bottom, row partials the columns by
// strides 32 … 1 (§8). row_sums [rows, tiles across], col_sums [tiles down, cols]. Twin: kernels/adafactor_sums.rs
struct Params {
  rows: u32,
  cols: u32,
  scale: f32,
  eps1: f32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> row_sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> col_sums: array<f32>;
@group(0) @binding(3) var<storage, read_write> params: Params;

const SIZE: u32 = 256u;
var<workgroup> q: array<f32, 2048>;
var<workgroup> eighths: array<f32, 256>;

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let tile = group_index(group, groups);
  let across = (params.cols + 63u) / 64u;
  let down = (params.rows + 31u) / 32u;
  let top = (tile / across) * 32u;
  let left = (tile % across) * 64u;
  for (var k = lane; k < 2048u; k += SIZE) {
    let i = top + k / 64u;
    let j = left + k % 64u;
    var value = 0.0;
    if (i < params.rows && j < params.cols) {
      let x = bounded(g[i * params.cols + j]) * params.scale;
      value = x * x + params.eps1;
    }
    q[k] = value;
  }
  workgroupBarrier();
  for (var k = lane; k < 64u; k += SIZE) {
    var sum = 0.0;
    for (var i = 0u; i < 32u; i++) {
      sum += q[i * 64u + k];
    }
    if (left + k < params.cols && tile < across * down) {
      col_sums[(tile / across) * params.cols + left + k] = sum;
    }
  }
  for (var k = lane; k < 256u; k += SIZE) {
    let start = (k / 8u) * 64u + k % 8u;
    let a = (q[start] + q[start + 32u]) + (q[start + 16u] + q[start + 48u]);
    let b = (q[start + 8u] + q[start + 40u]) + (q[start + 24u] + q[start + 56u]);
    eighths[k] = a + b;
  }
  workgroupBarrier();
  for (var k = lane; k < 32u; k += SIZE) {
    let e = 8u * k;
    let a = (eighths[e] + eighths[e + 4u]) + (eighths[e + 2u] + eighths[e + 6u]);
    let b = (eighths[e + 1u] + eighths[e + 5u]) + (eighths[e + 3u] + eighths[e + 7u]);
    if (top + k < params.rows && tile < across * down) {
      row_sums[(top + k) * across + tile % across] = a + b;
    }
  }
}

// Adafactor, pass 1 of 4 (shaders/README.md, "Adafactor"; arXiv:1804.04235): row and column sums of q = g² + ε₁ of a
// matrix [rows, cols], from one read of g. By tiles of 32 rows × 64 columns: column partials add the rows from top to
// bottom, row partials the columns by strides 32 … 1 ("Block tree" there). 8 threads sum a tile. Thread k adds its 8
// columns k, k + 8, … by strides 32, 16, 8 in registers; then a thread adds the 8 leaves of a row, 8 rows per round.
// row_sums [rows, tiles across], col_sums [tiles down, cols].
// Twin: optim/adafactor/sums.rs
struct Params {
  rows: u32,
  cols: u32,
  eps1: f32,
}

@group(0) @binding(0) var<storage, read_write> g: array<f32>;
@group(0) @binding(1) var<storage, read_write> gate: Gate;
@group(0) @binding(2) var<storage, read_write> row_sums: array<f32>;
@group(0) @binding(3) var<storage, read_write> col_sums: array<f32>;
@group(0) @binding(4) var<storage, read_write> params: Params;

const SIZE: u32 = 64u;
// 8 leaves per row, and one word of padding to keep rows in different banks.
var<workgroup> leaves: array<f32, SIZE * 9u>;

// q of row i at four columns; 0 past the end.
fn squares(i: u32, j: vec4<u32>) -> vec4<f32> {
  let inside = (vec4<u32>(i) < vec4<u32>(params.rows)) & (j < vec4<u32>(params.cols));
  let at = select(vec4<u32>(0u), i * params.cols + j, inside);
  let x = vec4<f32>(bounded(g[at.x]), bounded(g[at.y]), bounded(g[at.z]), bounded(g[at.w])) * gate.factor;
  return select(vec4<f32>(0.0), x * x + params.eps1, inside);
}

@compute @workgroup_size(SIZE)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let tile = group_index(group, groups) * (SIZE / 8u) + lane / 8u;
  let across = (params.cols + 63u) / 64u;
  let live = tile < across * ((params.rows + 31u) / 32u);
  let top = (tile / across) * 32u;
  let near = (tile % across) * 64u + lane % 8u + vec4<u32>(0u, 8u, 16u, 24u);
  let far = near + 32u;
  var near_sum = vec4<f32>(0.0);
  var far_sum = vec4<f32>(0.0);
  for (var round = 0u; round < 4u; round++) {
    let first = top + 8u * round;
    for (var i = 0u; i < 8u; i++) {
      let a = squares(first + i, near);
      let b = squares(first + i, far);
      near_sum += a;
      far_sum += b;
      let q = a + b;
      leaves[(lane - lane % 8u + i) * 9u + lane % 8u] = (q.x + q.z) + (q.y + q.w);
    }
    workgroupBarrier();
    let i = first + lane % 8u;
    if (live && i < params.rows) {
      let k = lane * 9u;
      let a = (leaves[k] + leaves[k + 4u]) + (leaves[k + 2u] + leaves[k + 6u]);
      let b = (leaves[k + 1u] + leaves[k + 5u]) + (leaves[k + 3u] + leaves[k + 7u]);
      row_sums[i * across + tile % across] = a + b;
    }
    workgroupBarrier();
  }
  for (var e = 0u; e < 4u; e++) {
    let at = (tile / across) * params.cols;
    if (live && near[e] < params.cols) {
      col_sums[at + near[e]] = near_sum[e];
    }
    if (live && far[e] < params.cols) {
      col_sums[at + far[e]] = far_sum[e];
    }
  }
}

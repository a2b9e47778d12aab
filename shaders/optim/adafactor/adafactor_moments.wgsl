// Adafactor, pass 2 of 4 (shaders/README.md, "Adafactor"; arXiv:1804.04235): the second moments, from the partials of
// pass 1.
//   row ← lerp(row, Σⱼ q, w)    col ← lerp(col, Σᵢ q, w)
// The partials go through the block tree ("Block tree" there). One thread per row or column, the trees in registers.
// Twin: optim/adafactor/moments.rs
struct Params {
  rows: u32,
  cols: u32,
  w: f32,
}

@group(0) @binding(0) var<storage, read_write> row_sums: array<f32>;
@group(0) @binding(1) var<storage, read_write> col_sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> gate: Gate;
@group(0) @binding(3) var<storage, read_write> row: array<f32>;
@group(0) @binding(4) var<storage, read_write> col: array<f32>;
@group(0) @binding(5) var<storage, read_write> params: Params;

// Partial k of the row or column that starts at `start`.
fn partial_at(by_row: bool, start: u32, stride: u32, k: u32) -> f32 {
  if (by_row) {
    return row_sums[start + k * stride];
  }
  return col_sums[start + k * stride];
}

// Exponent of the smallest power of two ≥ n.
fn bits_for(n: u32) -> u32 {
  return 32u - countLeadingZeros(max(n, 1u) - 1u);
}

// Leaves in bit-reversed order and a binary counter of open sums: the same additions as strides 128 … 1 over a block
// padded with 0.
fn block_sum(by_row: bool, start: u32, stride: u32, first: u32, n: u32) -> f32 {
  let bits = bits_for(n);
  var open: array<f32, 9>;
  for (var leaf = 0u; leaf < (1u << bits); leaf++) {
    let k = select(reverseBits(leaf) >> ((32u - bits) & 31u), 0u, bits == 0u);
    var sum = 0.0;
    if (k < n) {
      sum = partial_at(by_row, start, stride, first + k);
    }
    var level = 0u;
    for (var carry = leaf; (carry & 1u) == 1u; carry >>= 1u) {
      sum = open[level] + sum;
      level++;
    }
    open[level] = sum;
  }
  return open[bits];
}

fn tree_sum(by_row: bool, start: u32, stride: u32, n: u32) -> f32 {
  let blocks = (n + 255u) / 256u;
  let bits = bits_for(blocks);
  var open: array<f32, 18>;
  for (var leaf = 0u; leaf < (1u << bits); leaf++) {
    let block = select(reverseBits(leaf) >> ((32u - bits) & 31u), 0u, bits == 0u);
    var sum = 0.0;
    if (block < blocks) {
      sum = block_sum(by_row, start, stride, block * 256u, min(256u, n - block * 256u));
    }
    var level = 0u;
    for (var carry = leaf; (carry & 1u) == 1u; carry >>= 1u) {
      sum = open[level] + sum;
      level++;
    }
    open[level] = sum;
  }
  return open[bits];
}

@compute @workgroup_size(256)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let k = grid_index(group, groups, lane, 256u);
  let across = (params.cols + 63u) / 64u;
  let down = (params.rows + 31u) / 32u;
  if (gate.closed != 0u) {
    return;
  }
  if (k < params.rows) {
    row[k] = lerp(row[k], tree_sum(true, k * across, 1u, across), params.w);
  } else if (k - params.rows < params.cols) {
    let j = k - params.rows;
    col[j] = lerp(col[j], tree_sum(false, j, params.cols, down), params.w);
  }
}

// Input gradients by tiles: dx[r, i] = Σ_c dy[r, c] w[c, i] in slices of dy's columns, to which the first slice adds
// as many vectors of further products as the stem has more(), of more_output(r, c) and more_weight(j, i); added to dx
// if add has bit 0. dy [n, 4 m4], w [4 m4, 4 k4], dx [slices, n, 4 k4]. A workgroup: 64 rows by 64 columns of dx, 16
// products of the sum at a time in workgroup memory; a thread: the rows ty + 8 a and the vectors tx, tx + 8.
var<workgroup> left: array<vec4<f32>, 320>;
var<workgroup> right: array<vec4<f32>, 256>;

fn input_gradient(tile: u32, lane: u32, rounds: u32) {
  let k4 = params.k4;
  let across = (k4 + 15u) / 16u;
  let tiles = across * ((params.n + 63u) / 64u);
  let slice = tile / tiles;
  let first = slice * params.slice4;
  let own = min(params.slice4, params.m4 - first);
  let all = own + select(0u, more(), slice == 0u);
  let top = tile % tiles / across * 64u;
  let column = tile % across * 16u;
  var sums = array<vec4<f32>, 16>();
  for (var round = 0u; round < rounds; round++) {
    for (var e = 0u; e < 4u; e++) {
      let row = top + lane / 4u + 16u * e;
      let c = 4u * round + lane % 4u;
      var p = vec4<f32>();
      if (row < params.n && c < own) {
        p = dy[row * params.m4 + first + c];
      } else if (row < params.n && c < all) {
        p = more_output(row, c - own);
      }
      left[(row - top) * 5u + lane % 4u] = p;
      let r = 16u * round + lane / 16u + 4u * e;
      let i = column + lane % 16u;
      var q = vec4<f32>();
      if (i < k4 && r < 4u * own) {
        q = weight4(4u * first + r, i);
      } else if (i < k4 && r < 4u * all) {
        q = more_weight(r - 4u * own, i);
      }
      right[(r % 16u) * 16u + lane % 16u] = q;
    }
    workgroupBarrier();
    for (var i = 0u; i < 4u; i++) {
      let at = i * 64u + lane % 8u;
      let a0 = right[at]; let b0 = right[at + 8u]; let a1 = right[at + 16u]; let b1 = right[at + 24u];
      let a2 = right[at + 32u]; let b2 = right[at + 40u]; let a3 = right[at + 48u]; let b3 = right[at + 56u];
      for (var a = 0u; a < 8u; a++) {
        let p = left[(lane / 8u + 8u * a) * 5u + i];
        sums[2u * a] += (p.x * a0 + p.y * a1) + (p.z * a2 + p.w * a3);
        sums[2u * a + 1u] += (p.x * b0 + p.y * b1) + (p.z * b2 + p.w * b3);
      }
    }
    workgroupBarrier();
  }
  for (var a = 0u; a < 16u; a++) {
    let row = top + lane / 8u + 8u * (a / 2u);
    let i = column + lane % 8u + 8u * (a % 2u);
    if (row < params.n && i < k4) {
      let at = (slice * params.n + row) * k4 + i;
      dx[at] = select(vec4<f32>(), dx[at], (params.add & 1u) == 1u) + sums[a];
    }
  }
}

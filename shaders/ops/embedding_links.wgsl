// Chains of equal ids, so that the gradient sums each row of the table in a fixed order, without atomics.
// links[v] = first r with ids[r] = v, links[V + r] = next r' > r with ids[r'] = ids[r]; n if there is none.
// One thread: one link. Twin: ops/embedding.rs
struct Params {
  n: u32,
  vocab: u32,
}

@group(0) @binding(0) var<storage, read_write> ids: array<i32>;
@group(0) @binding(1) var<storage, read_write> links: array<u32>;
@group(0) @binding(2) var<storage, read_write> params: Params;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let i = grid_index(group, groups, lane, 64u);
  let n = params.n;
  let vocab = params.vocab;
  if (i >= vocab + n) {
    return;
  }
  var wanted = i32(i);
  var r = 0u;
  if (i >= vocab) {
    wanted = ids[i - vocab];
    r = i - vocab + 1u;
  }
  while (r < n) {
    if (ids[r] == wanted) {
      break;
    }
    r++;
  }
  links[i] = r;
}

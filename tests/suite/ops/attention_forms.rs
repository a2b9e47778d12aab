//! Forms of attention: capped scores, windows, and heads wider than 128, each kernel against its twin.

use std::collections::BTreeMap;

use tabtune::gpu::AnyKernel;
use tabtune::ops::attention::kernels;
use tabtune::ops::attention::params::Params;
use tabtune_tests::kernels::{Case, check};

use super::attention::{WHOLE, by_row, forward_from, key_value_after, parts, query_after, starts};
use super::attention_tiles::{GRADIENTS, by_tiles};

/// A shape, and the first key of each query.
struct Form {
    p: Params,
    starts: Vec<u32>,
}

impl Form {
    fn new(
        (batch, heads, kv_heads, len, offset, width4): (usize, usize, usize, usize, usize, usize),
        cap: f32,
        documents: bool,
    ) -> Self {
        let scale = 1.0 / ((width4 * 4) as f32).sqrt();
        let p = Params {
            batch,
            heads,
            kv_heads,
            len,
            offset,
            width4,
            scale,
            cap,
            documents,
        };
        let starts = starts(&p);
        Self { p, starts }
    }

    /// The same with queries that see at most the last `window` keys, within documents if it has them.
    fn within(mut self, window: usize) -> Self {
        let Params {
            batch,
            len,
            offset,
            documents,
            ..
        } = self.p;
        let seen = |b: usize, t: usize| {
            let start = if documents {
                self.starts[b * len + t]
            } else {
                0
            };
            start.max((offset + t + 1).saturating_sub(window) as u32)
        };
        self.starts = (0..batch)
            .flat_map(|b| (0..len).map(move |t| (b, t)))
            .map(|(b, t)| seen(b, t))
            .collect();
        self.p.documents = true;
        self
    }

    fn forward(&self) -> Case {
        forward_from(self.p, self.starts.clone())
    }

    fn query(&self) -> Case {
        query_after(self.p, self.forward().twin())
    }

    fn key_value(&self, shared: bool) -> Case {
        key_value_after(self.p, self.query().twin(), shared)
    }
}

/// Makes the same pass with a kernel by blocks, in one part and in several.
fn by_blocks(
    form: &Form,
    case: &Case,
    kernel: &'static AnyKernel,
    written: [usize; 2],
) -> Vec<Case> {
    [&[WHOLE][..], &[16, 48, WHOLE]]
        .into_iter()
        .flat_map(|ends| parts(form.p, &|_| case.clone(), kernel, ends, &written))
        .collect()
}

/// Makes the three passes of a form, each with its kernels by rows, by blocks and by tiles.
fn passes(form: &Form) -> Vec<Case> {
    let Params {
        batch,
        heads,
        kv_heads,
        len,
        offset,
        ..
    } = form.p;
    let (forward, query) = (form.forward(), form.query());
    let [shared, key_value] = [true, false].map(|shared| form.key_value(shared));
    let mut cases = by_blocks(form, &forward, kernels::FORWARD_BLOCK.any(), [4, 5]);
    let block = kernels::BACKWARD_QUERY_BLOCK.any();
    cases.extend(by_blocks(form, &query, block, [5, 6]));
    let block = kernels::BACKWARD_KEY_VALUE_BLOCK.any();
    cases.extend(by_blocks(form, &shared, block, [5, 6]));
    let (queries, keys) = (batch * len * heads, batch * (offset + len) * kv_heads);
    cases.extend([
        by_row(query.clone(), kernels::BACKWARD_QUERY.any(), queries),
        by_row(shared, kernels::BACKWARD_KEY_VALUE.any(), keys),
        by_tiles(form.p, forward.clone()),
        forward,
        query,
        key_value,
    ]);
    cases
}

/// Compares every kernel with its twin on all forms. By its name without `attention_`, a kernel has a change that it must notice.
fn every_kernel(forms: &[Form], flip: impl Fn(&str) -> (&'static str, &'static str)) {
    let mut kernels: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
    for case in forms.iter().flat_map(passes) {
        kernels.entry(case.kernel.name).or_default().push(case);
    }
    for (name, cases) in kernels {
        check(&cases, GRADIENTS, flip(&name["attention_".len()..]));
    }
}

/// Leaves the cap, or its slope, out of one place of each kernel.
#[test]
fn attention_kernels_cap_scores() {
    let forms = [
        Form::new((1, 4, 2, 37, 0, 4), 1.0, false),
        Form::new((1, 2, 1, 35, 5, 20), 1.5, true),
        Form::new((2, 2, 1, 9, 0, 16), 50.0, false),
    ];
    every_kernel(&forms, |kernel| match kernel {
        "forward" => ("s = capped(s, params.cap)", "s = s"),
        "forward_block" => ("h5 = capped(h5, bound)", "h5 = h5"),
        "forward_tile" | "forward_tile_wide" => ("s2 = capped(s2, bound)", "s2 = s2"),
        "backward_query_block" => ("n5 *= cap_slope(h5, bound)", "n5 *= 1.0"),
        "backward_query_tile" | "backward_query_tile_wide" => ("*= cap_slope(s1, bound)", "*= 1.0"),
        "backward_key_value_block" => ("m3 *= cap_slope(l3, bound)", "m3 *= 1.0"),
        "backward_key_value_tile" => ("= cap_slope(s1, bound)", "= vec4<f32>(1.0)"),
        _ => ("d *= cap_slope(vec4<f32>(s), bound).x", "d *= 1.0"),
    });
}

/// Starts the window one key late in one place of each kernel.
#[test]
fn attention_kernels_begin_at_the_window() {
    let forms = [
        Form::new((1, 2, 1, 67, 0, 4), 0.0, false).within(5),
        Form::new((2, 2, 1, 40, 100, 4), 0.0, true).within(33),
        Form::new((1, 2, 1, 100, 0, 20), 0.0, false).within(34),
        Form::new((1, 3, 1, 150, 30, 4), 2.0, true).within(40),
    ];
    every_kernel(&forms, |kernel| match kernel {
        "forward" => (
            "min(starts[i / heads], keys",
            "min(starts[i / heads] + 1u, keys",
        ),
        "forward_block" => (
            "fromh = vec4<u32>(j) - firsth",
            "fromh = vec4<u32>(j) - firsth - 1u",
        ),
        "backward_query" => ("var j = first;", "var j = first + 1u;"),
        "backward_query_block" => (
            "froml = vec4<u32>(j) - firstl",
            "froml = vec4<u32>(j) - firstl - 1u",
        ),
        "backward_key_value" => ("+ t]) > j", "+ t]) >= j"),
        "backward_key_value_block" => ("jh - firsth.w < u7", "jh - firsth.w - 1u < u7"),
        "backward_key_value_tile" => ("(vec4<u32>(first.z) <= j)", "(vec4<u32>(first.z) < j)"),
        _ => ("(key2 >= first)", "(key2 > first)"),
    });
}

/// Takes heads of 160 and 256; by tiles, only the first workgroup of a head has the first columns.
#[test]
fn attention_kernels_take_heads_of_256() {
    let forms = [
        Form::new((1, 2, 1, 35, 0, 64), 0.0, false),
        Form::new((1, 4, 2, 33, 5, 40), 0.0, true),
        Form::new((2, 2, 2, 3, 14, 64), 2.0, false),
    ];
    every_kernel(&forms, |kernel| match kernel {
        "forward" => ("sums[c] * old", "sums[c]"),
        "forward_block" => ("+ c] * oldh.z", "+ c]"),
        "backward_query" => ("d -= delta", "d += delta"),
        "backward_query_block" => ("n5 -= deltah", "n5 += deltah"),
        "backward_key_value" => ("+= p * dy", "+= ds * dy"),
        "backward_key_value_block" => ("m3 -= f3", "m3 += f3"),
        "backward_key_value_tile" => ("tile % halves * 16u", "0u"),
        _ => ("tile % parts * 32u", "0u"),
    });
}

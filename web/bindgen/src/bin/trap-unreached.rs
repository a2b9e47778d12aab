//! `trap-unreached FILE`: replaces functions of a compiled module that the linker keeps because tables name them, although nothing here calls them.
//! Their bodies become a trap, and wasm-opt then drops everything that only they reach.

use std::env;

use anyhow::{Context, Result, bail};
use walrus::{FunctionBuilder, FunctionId, FunctionKind, Module, ModuleConfig};

/// Returns whether the name of a function is one of a kind.
type Pattern = fn(&str) -> bool;

/// Kinds of such functions, each with a name that an error shows.
const UNREACHED: [(&str, Pattern); 14] = [
    // The compiler of kernels can read its intermediate language as text, which it never receives.
    ("Parsable::parse of a type", |name| {
        name.ends_with(" as pliron::parsable::Parsable>::parse")
    }),
    ("Parsable::parse of an implementation", |name| {
        name.contains("<impl pliron::parsable::Parsable for ") && name.ends_with(">::parse")
    }),
    ("float_parse", |name| {
        name == "pliron::utils::apfloat::float_parse"
            || name.ends_with("::APFloatType>::parse_value")
    }),
    ("canonical_syntax_parse_impl", |name| {
        name == "pliron::op::canonical_syntax_parse_impl"
    }),
    ("build_from_str_r of a float", |name| {
        name.ends_with("DynFloat>::build_from_str_r")
    }),
    ("parsers of pliron", |name| {
        name.starts_with("pliron::irfmt::parsers::")
    }),
    ("combine, with which pliron parses", |name| {
        name.trim_start_matches('<').starts_with("combine::")
    }),
    // Burn has quantized tensors, of which none is made here: packed weights are read by kernels of `shaders`.
    ("QTensorOps", |name| name.contains("QTensorOps")),
    ("quantization of burn_cubecl", |name| {
        name.starts_with("burn_cubecl::kernel::quantization::")
    }),
    ("quantization of cubecl", |name| {
        name.starts_with("cubecl_std::quant::")
    }),
    ("cubek_quant", |name| {
        name.trim_start_matches('<').starts_with("cubek_quant::")
    }),
    ("quantized tensors of burn_cubecl", |name| {
        name.starts_with("burn_cubecl::ops::qtensor::")
    }),
    ("packed values of cubecl", |name| {
        name.starts_with("cubecl_std::tensor::contiguous::")
            && name.ends_with("into_contiguous_packed_ref")
    }),
    // Nor does anything store a tensor in tiles, which burn_cubecl checks before it lays one out in rows again.
    ("tiled storage", |name| {
        name.starts_with("cubek_matmul::tiled::storage::")
    }),
];

/// Returns whether a function would call one of them.
fn calls_unreached(name: &str) -> bool {
    name == "pliron::parsable::parse_from_str"
        || name.ends_with("::clone_into_context")
        || (name.starts_with("burn_tensor::") && name.contains("quantize"))
}

/// Returns the name that the linker wrote, without the digest at its end.
fn undigested(name: &str) -> &str {
    let digest = |end: &str| {
        end.len() == 17
            && end.starts_with('h')
            && end[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    name.rsplit_once("::")
        .filter(|(_, end)| digest(end))
        .map_or(name, |(front, _)| front)
}

/// Returns the functions that nothing reaches.
///
/// # Errors
/// A function that calls one of them; a kind of which there is none, since its name has changed.
fn unreached(module: &Module) -> Result<Vec<FunctionId>> {
    let mut found = [const { Vec::new() }; UNREACHED.len()];
    for function in module.funcs.iter() {
        let Some(name) = function.name.as_deref().map(undigested) else {
            continue;
        };
        if calls_unreached(name) {
            bail!("the browser core has {name}, which calls what trap-unreached drops");
        }
        for ((_, is_one), ids) in UNREACHED.iter().zip(&mut found) {
            if is_one(name) {
                ids.push(function.id());
            }
        }
    }
    if let Some(((kind, _), _)) = UNREACHED.iter().zip(&found).find(|(_, ids)| ids.is_empty()) {
        bail!("the browser core has no function of the kind {kind}");
    }
    Ok(found.concat())
}

/// Puts a trap in place of a function.
fn trap(module: &mut Module, id: FunctionId) {
    let shape = module.types.get(module.funcs.get(id).ty());
    let (params, results) = (shape.params().to_vec(), shape.results().to_vec());
    let args = params.iter().map(|one| module.locals.add(*one)).collect();
    let mut builder = FunctionBuilder::new(&mut module.types, &params, &results);
    builder.func_body().unreachable();
    module.funcs.get_mut(id).kind = FunctionKind::Local(builder.local_func(args));
}

fn main() -> Result<()> {
    let path = env::args()
        .nth(1)
        .context("expected the compiled module, found no file")?;
    let mut config = ModuleConfig::new();
    config
        .strict_validate(false)
        .generate_producers_section(false);
    let mut module = Module::from_file_with_config(&path, &config)?;
    for id in unreached(&module)? {
        trap(&mut module, id);
    }
    module
        .emit_wasm_file(&path)
        .with_context(|| format!("{path}: cannot be written"))
}

//! Rules that every kernel must follow, checked without a GPU (shaders/README.md, laws).

use naga::{AddressSpace, ScalarKind, StorageAccess, TypeInner, proc::Layouter, valid};
use std::collections::BTreeSet;
use tabtune::catalogue::catalogue;
use tabtune::gpu::{Access, AnyKernel, COMMON};

use crate::house::source;

fn module(kernel: &AnyKernel) -> naga::Module {
    let source = kernel.assembled();
    naga::front::wgsl::parse_str(&source)
        .unwrap_or_else(|e| panic!("{}: {}", kernel.name, e.emit_to_string(&source)))
}

/// Reads the files of `shaders`, those of the chunks or the others: their names and texts.
fn files(chunks: bool) -> impl Iterator<Item = (String, String)> {
    let all = source::files("shaders", &[".wgsl"]).into_iter();
    let names = all.map(|path| (source::shown(&path), source::text(&path)));
    names.filter(move |(name, _)| name.starts_with("shaders/chunks/") == chunks)
}

/// Returns a shader as it is compiled: without comments and empty lines.
fn compiled(text: &str) -> String {
    let code = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default().trim_end());
    code.filter(|line| !line.is_empty())
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn catalogue_is_the_shader_folder() {
    let texts =
        |chunks| -> BTreeSet<String> { files(chunks).map(|(_, text)| compiled(&text)).collect() };
    let names: BTreeSet<&str> = catalogue().map(|kernel| kernel.name).collect();
    assert_eq!(names.len(), catalogue().count(), "a name occurs twice");
    let stems = catalogue()
        .map(|kernel| kernel.source)
        .chain([COMMON])
        .map(String::from)
        .collect();
    assert!(
        texts(false) == stems,
        "a shader that no kernel has, or a kernel with another text"
    );
    let of = |kernel: &AnyKernel| {
        kernel
            .chunk
            .map_or(&[][..], |chunk| chunk.texts)
            .iter()
            .copied()
            .chain(kernel.entry)
            .map(String::from)
    };
    let chunks = catalogue().flat_map(of).collect();
    assert!(
        texts(true) == chunks,
        "a chunk that no kernel has, or a kernel with another one"
    );
}

#[test]
fn shaders_validate_and_have_no_template_holes() {
    for kernel in catalogue() {
        let module = module(kernel);
        let mut validator =
            valid::Validator::new(valid::ValidationFlags::all(), valid::Capabilities::empty());
        validator.validate(&module).unwrap_or_else(|e| {
            panic!("{}: {}", kernel.name, e.emit_to_string(&kernel.assembled()))
        });
        assert!(
            !kernel.assembled().contains("{{"),
            "{}: a placeholder for SourceTemplate",
            kernel.name
        );
    }
}

#[test]
fn shaders_have_short_lines_and_few_of_them() {
    for (name, text) in files(false).chain(files(true)) {
        let made = text.starts_with("// Made by shaders/blocks.mjs\n");
        assert!(
            made || text.lines().count() <= 150,
            "{name}: longer than 150 lines"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 120),
            "{name}: a line of more than 120 columns"
        );
    }
}

#[test]
fn entry_points_are_main_with_the_recorded_workgroup() {
    for kernel in catalogue() {
        let module = module(kernel);
        assert_eq!(module.entry_points.len(), 1, "{}", kernel.name);
        let entry = &module.entry_points[0];
        assert_eq!(entry.name, "main", "{}", kernel.name);
        assert_eq!(
            entry.workgroup_size,
            [kernel.workgroup, 1, 1],
            "{}",
            kernel.name
        );
        assert!(kernel.workgroup <= 256, "{}", kernel.name);
    }
}

#[test]
fn bindings_are_those_of_the_record() {
    for kernel in catalogue() {
        let module = module(kernel);
        let mut found: Vec<(u32, String)> = Vec::new();
        for (_, variable) in module.global_variables.iter() {
            let AddressSpace::Storage { access } = variable.space else {
                continue;
            };
            assert_eq!(
                access,
                StorageAccess::LOAD | StorageAccess::STORE,
                "{}: every storage binding is read_write",
                kernel.name
            );
            let binding = variable.binding.as_ref().unwrap();
            assert_eq!(binding.group, 0, "{}", kernel.name);
            found.push((binding.binding, variable.name.clone().unwrap()));
        }
        found.sort();
        let names = kernel.bindings.iter().map(|b| b.name).chain(["params"]);
        let expected: Vec<(u32, String)> = names
            .enumerate()
            .map(|(i, name)| (i as u32, name.to_string()))
            .collect();
        assert_eq!(found, expected, "{}", kernel.name);
        assert!(
            found.len() <= 8,
            "{}: more than 8 storage buffers",
            kernel.name
        );
        let written = &kernel.bindings[kernel.reads()..];
        assert!(
            written.iter().all(|b| b.access != Access::Read),
            "{}: reads after it writes",
            kernel.name
        );
    }
}

#[test]
fn every_binding_is_used() {
    for kernel in catalogue() {
        let module = module(kernel);
        let mut validator =
            valid::Validator::new(valid::ValidationFlags::all(), valid::Capabilities::empty());
        let info = validator.validate(&module).unwrap();
        for (handle, variable) in module.global_variables.iter() {
            let used = !info.get_entry_point(0)[handle].is_empty();
            assert!(
                used || variable.binding.is_none(),
                "{}: {:?} is dropped from the layout",
                kernel.name,
                variable.name
            );
        }
    }
}

#[test]
fn params_have_the_recorded_fields() {
    for kernel in catalogue() {
        let module = module(kernel);
        let mut layouter = Layouter::default();
        layouter.update(module.to_ctx()).unwrap();
        let (_, variable) = module
            .global_variables
            .iter()
            .find(|(_, v)| v.name.as_deref() == Some("params"))
            .unwrap();
        let TypeInner::Struct { members, span } = &module.types[variable.ty].inner else {
            panic!("{}: params", kernel.name)
        };
        let noise = kernel.params.last().is_some_and(|(_, ty)| *ty == "Noise");
        let words = if noise {
            (kernel.params.len() - 1).next_multiple_of(4) + 8
        } else {
            kernel.params.len()
        };
        assert_eq!(*span as usize, words * 4, "{}", kernel.name);
        let found: Vec<(String, u32, &str)> = members
            .iter()
            .map(|m| {
                let field = &module.types[m.ty];
                let kind = match field.inner {
                    TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Uint => "u32",
                    TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Sint => "i32",
                    TypeInner::Scalar(scalar) if scalar.kind == ScalarKind::Float => "f32",
                    _ => field
                        .name
                        .as_deref()
                        .unwrap_or("neither a scalar nor a struct"),
                };
                (m.name.clone().unwrap(), m.offset, kind)
            })
            .collect();
        let fields = kernel.params.iter().enumerate();
        // The noise starts at 16 bytes, as a struct inside a uniform buffer must.
        let offset = |i: usize, ty: &str| {
            if ty == "Noise" {
                i.next_multiple_of(4) as u32 * 4
            } else {
                i as u32 * 4
            }
        };
        let expected: Vec<(String, u32, &str)> = fields
            .map(|(i, (name, ty))| (name.to_string(), offset(i, ty), *ty))
            .collect();
        assert_eq!(found, expected, "{}", kernel.name);
    }
}

/// Values that vary from step to step have 256 bytes in the buffer of a recording (`gpu/graph.rs`): 8 words for the noise, and the rest.
#[test]
fn parameters_that_vary_fit_their_slot() {
    let varying: Vec<_> = catalogue().filter(|kernel| kernel.varies).collect();
    assert!(varying.len() >= 14, "{} kernels", varying.len());
    for kernel in varying {
        assert!(
            kernel.params.len() + 8 <= 64,
            "{}: {} parameters",
            kernel.name,
            kernel.params.len()
        );
    }
}

#[test]
fn workgroup_memory_is_within_16_kib() {
    for kernel in catalogue() {
        let module = module(kernel);
        let mut layouter = Layouter::default();
        layouter.update(module.to_ctx()).unwrap();
        let shared = module
            .global_variables
            .iter()
            .filter(|(_, v)| v.space == AddressSpace::WorkGroup);
        let bytes: u32 = shared.map(|(_, v)| layouter[v.ty].size).sum();
        assert!(bytes <= 16 * 1024, "{}: {bytes} bytes", kernel.name);
    }
}

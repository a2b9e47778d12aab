//! Memory while opening files: headers that need much memory for each of their bytes.

use tabtune::bundle::{FileFormat, inspect};
use tabtune::formats::MemorySource;
use tabtune::portable::open_json;
use tabtune::tokenizer::{PartsModel, Tokenizer, TokenizerParts};
use tabtune_tests::allocation::most_held;
use tabtune_tests::in_full;

use super::most_bytes;
use crate::hostile::rows::{array, gg, key, tensor, text};
use crate::hostile::{bytes_of, cases};

/// Returns the size of the files in bytes, large enough that the allowance of 16 MiB hides little next to 8 times the size. `TABTUNE_LARGE` sets
/// another one, in MiB.
pub fn large() -> usize {
    std::env::var("TABTUNE_LARGE").map_or(if in_full() { 8 } else { 4 }, |size| {
        size.parse().expect("TABTUNE_LARGE is a number")
    }) << 20
}
pub const MAX_COUNT: usize = 100_000;

/// Returns the n-th of the shortest names, which are all different.
pub fn name(mut n: usize) -> String {
    const SIGNS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    let mut name = String::new();
    loop {
        name.push(char::from(SIGNS[n % 64]));
        n /= 64;
        if n == 0 {
            return name;
        }
        n -= 1;
    }
}

/// Makes as many items as fill `bytes`, separated by commas.
pub fn list(bytes: usize, item: impl Fn(String) -> String) -> String {
    let mut out = String::new();
    for n in 0.. {
        if out.len() >= bytes {
            break;
        }
        out.push_str(if n == 0 { "" } else { "," });
        out.push_str(&item(name(n)));
    }
    out
}

/// Makes a list of items that are all the same.
pub fn same(item: &str) -> String {
    format!("{item},").repeat(large() / (item.len() + 1)) + item
}

pub fn safetensors(header: &str) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat()
}

/// Opens a file of these bytes in some way, and ignores the result.
pub type Open = fn(&[u8]);

fn inspected(format: FileFormat, file: &[u8]) {
    drop(inspect(
        &MemorySource::new("f", file),
        Some(format),
        || Ok(vec![]),
        true,
    ));
}

const SAFETENSORS: Open = |file| inspected(FileFormat::Safetensors, file);
const GGUF: Open = |file| inspected(FileFormat::Gguf, file);
const INDEX: Open = |file| inspected(FileFormat::Index, file);
const PEFT: Open = |file| inspected(FileFormat::Peft, file);
const JSON: Open = |file| inspected(FileFormat::Json, file);
const PORTABLE_JSON: Open = |file| drop(open_json(&MemorySource::new("f", file)));

/// Reports an opening that holds too much memory. The file itself, which a source in memory contains, is not counted.
fn check(what: &str, file: Vec<u8>, open: Open) -> Option<String> {
    let start = std::time::Instant::now();
    let held = most_held(|| open(&file)).1;
    // The copy that the source has.
    let copy = if matches!(what.split([' ', ':']).next(), Some("manifest" | "request")) {
        0
    } else {
        file.len() as u64
    };
    let (held, most) = (held.saturating_sub(copy), most_bytes(&file));
    println!(
        "{what}: {} MiB for {} MiB, {:.1} s",
        held >> 20,
        file.len() >> 20,
        start.elapsed().as_secs_f64()
    );
    (held > most).then(|| {
        format!(
            "{what}: holds {held} bytes for {}, at most {most} are allowed",
            file.len()
        )
    })
}

pub fn check_all(files: impl IntoIterator<Item = (&'static str, Open, Vec<u8>)>) {
    let wrong: Vec<String> = files
        .into_iter()
        .filter_map(|(what, open, file)| check(what, file, open))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Line 32 of tests/suite/portable/README.md: opening holds at most 8 times the header and 16 MiB, whatever a file claims.
#[test]
fn opening_holds_little_memory() {
    let open = |format: &str| match FileFormat::from_word(format).unwrap() {
        FileFormat::Safetensors => SAFETENSORS,
        FileFormat::Gguf => GGUF,
        FileFormat::Index => INDEX,
        FileFormat::Peft => PEFT,
        FileFormat::Json => JSON,
    };
    check_all(cases().iter().map(|case| {
        (
            "hostile file",
            open(case["format"].as_str().unwrap()),
            bytes_of(case),
        )
    }));
}

/// Line 32 of tests/suite/portable/README.md, for headers of safetensors.
#[test]
fn opening_holds_little_memory_of_safetensors() {
    let zeros = same("0");
    let record = |name: &str, more: &str| {
        format!(r#""{name}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]{more}}}"#)
    };
    let records = |of: &dyn Fn(usize) -> String| {
        (0..MAX_COUNT)
            .map(|n| record(&of(n), ""))
            .collect::<Vec<_>>()
            .join(",")
    };
    let headers: [(&'static str, &dyn Fn() -> String); 13] = [
        ("zeros in a shape", &|| {
            format!(r#""a":{{"dtype":"F32","shape":[{zeros}],"data_offsets":[0,0]}}"#)
        }),
        ("zeros in offsets", &|| {
            format!(r#""a":{{"dtype":"F32","shape":[0],"data_offsets":[{zeros}]}}"#)
        }),
        ("lists in an unknown field", &|| {
            record("a", &format!(",\"x\":[{}]", same("[]")))
        }),
        ("lists in lists", &|| {
            record("a", &format!(",\"x\":[{}]", same("[[[[[]]]]]")))
        }),
        ("many unknown fields", &|| {
            record(
                "a",
                &format!(",{}", list(large(), |name| format!("\"{name}\":0"))),
            )
        }),
        ("zeros in the metadata", &|| {
            format!(r#""__metadata__":{{"a":[{zeros}]}}"#)
        }),
        ("many metadata", &|| {
            format!(
                r#""__metadata__":{{{}}}"#,
                list(large(), |name| format!("\"{name}\":\"\""))
            )
        }),
        ("many metadata of tabtune", &|| {
            format!(
                r#""__metadata__":{{{}}}"#,
                list(large(), |name| format!("\"tabtune.{name}\":\"\""))
            )
        }),
        ("a long name with escapes", &|| {
            format!(r#""__metadata__":{{"{}":""}}"#, "\\n".repeat(large() / 2))
        }),
        ("many tensors", &|| records(&name)),
        ("many tensors with names that are not shown", &|| {
            records(&|n| format!("{}\\u202e", name(n)))
        }),
        ("more tensors than there may be", &|| {
            list(large(), |name| format!("\"{name}\":0"))
        }),
        ("many objects", &|| {
            list(large(), |name| format!("\"{name}\":{{}}"))
        }),
    ];
    check_all(
        headers
            .into_iter()
            .map(|(what, text)| (what, SAFETENSORS, safetensors(&format!("{{{}}}", text())))),
    );
}

/// Line 32 of tests/suite/portable/README.md, for headers of GGUF.
#[test]
fn opening_holds_little_memory_of_gguf() {
    let tensors = |of: &dyn Fn(usize) -> Vec<u8>| (0..MAX_COUNT).map(of).collect::<Vec<_>>();
    let keys =
        |of: &dyn Fn(usize) -> Vec<u8>| gg(&(0..MAX_COUNT).map(of).collect::<Vec<_>>(), &[], 0);
    let texts = |count: usize, empty: bool| -> Vec<u8> {
        (0..count)
            .flat_map(|n| text(if empty { String::new() } else { name(n) }.as_bytes()))
            .collect()
    };
    // Texts that are all empty, or all different.
    let list_of = |name: &str, count: usize, empty: bool| {
        key(name, 9, &array(8, count as u64, &texts(count, empty)))
    };
    let model = |word: &str| key("tokenizer.ggml.model", 8, &text(word.as_bytes()));
    // Just above a power of two, where a list that doubles has the most unused room.
    let (many, tokens) = ((1 << 22) + 1, (1 << 21) + (1 << 20));
    check_all([
        ("keys of a byte", GGUF, keys(&|n| key(&name(n), 0, &[0]))),
        (
            "long keys",
            GGUF,
            keys(&|n| key(&format!("{:0340}", n), 0, &[0])),
        ),
        (
            "texts that are not UTF-8",
            GGUF,
            keys(&|n| key(&name(n), 8, &text(b"\xff"))),
        ),
        ("empty texts", GGUF, gg(&[list_of("a", many, true)], &[], 0)),
        (
            "bools",
            GGUF,
            gg(
                &[
                    key("a", 9, &array(7, 1 << 24, &vec![1; 1 << 24])),
                    key("b", 9, &array(7, (1 << 23) + 1, &vec![1; (1 << 23) + 1])),
                ],
                &[],
                0,
            ),
        ),
        (
            "tokens that are all empty",
            GGUF,
            gg(
                &[model("gpt2"), list_of("tokenizer.ggml.tokens", many, true)],
                &[],
                0,
            ),
        ),
        (
            "tokens without merges",
            GGUF,
            gg(
                &[
                    model("gpt2"),
                    list_of("tokenizer.ggml.tokens", tokens, false),
                ],
                &[],
                0,
            ),
        ),
        (
            "tokens with types",
            GGUF,
            gg(
                &[
                    model("llama"),
                    list_of("tokenizer.ggml.tokens", tokens, false),
                    key(
                        "tokenizer.ggml.token_type",
                        9,
                        &array(0, tokens as u64, &vec![1; tokens]),
                    ),
                ],
                &[],
                0,
            ),
        ),
        (
            "merges",
            GGUF,
            gg(
                &[
                    model("gpt2"),
                    list_of("tokenizer.ggml.tokens", 64, false),
                    key(
                        "tokenizer.ggml.merges",
                        9,
                        &array(8, tokens as u64, &text(b"0 0").repeat(tokens)),
                    ),
                ],
                &[],
                0,
            ),
        ),
        (
            "empty names of templates",
            GGUF,
            gg(
                &[
                    model("llama"),
                    list_of("tokenizer.ggml.tokens", 64, false),
                    key("tokenizer.chat_template.", 8, &text(b"")),
                    list_of("tokenizer.chat_templates", many, true),
                ],
                &[],
                0,
            ),
        ),
        (
            "scalars",
            GGUF,
            gg(
                &[],
                &tensors(&|n| tensor(&name(n), &[], u32::MAX, 32 * n as u64)),
                32 * MAX_COUNT,
            ),
        ),
        (
            "tensors of four dimensions without values",
            GGUF,
            gg(&[], &tensors(&|n| tensor(&name(n), &[0; 4], 0, 0)), 0),
        ),
    ]);
}

/// Line 32 of tests/suite/portable/README.md, for indexes and adapters.
#[test]
fn opening_holds_little_memory_of_indexes_and_adapters() {
    let zeros = same("0");
    let index =
        |map: String, more: &str| format!("{{\"weight_map\":{{{map}}}{more}}}").into_bytes();
    let adapter = |fields: &str| {
        format!(r#"{{"peft_type":"LORA","r":1,"lora_alpha":1{fields}}}"#).into_bytes()
    };
    let named = |fields: &str| adapter(&format!(",\"target_modules\":[\"a\"]{fields}"));
    check_all([
        (
            "index: zeros",
            INDEX,
            index(String::new(), &format!(",\"metadata\":[{zeros}]")),
        ),
        (
            "index: many tensors",
            INDEX,
            index(
                list(large(), |name| format!("\"{name}\":\"a.safetensors\"")),
                "",
            ),
        ),
        (
            "index: many shards",
            INDEX,
            index(
                list(large(), |name| format!("\"{name}\":\"{name}.safetensors\"")),
                "",
            ),
        ),
        (
            "index: as many shards as there may be",
            INDEX,
            index(
                (0..10_000)
                    .map(|n| format!("\"{0}\":\"{0}.safetensors\"", name(n)))
                    .collect::<Vec<_>>()
                    .join(","),
                "",
            ),
        ),
        ("adapter: zeros", PEFT, named(&format!(",\"x\":[{zeros}]"))),
        (
            "adapter: targets",
            PEFT,
            adapter(&format!(
                ",\"target_modules\":[{}]",
                list(large(), |name| format!("\"{name}\""))
            )),
        ),
        (
            "adapter: empty targets",
            PEFT,
            adapter(&format!(",\"target_modules\":[{}]", same("\"\""))),
        ),
        (
            "adapter: patterns",
            PEFT,
            named(&format!(
                ",\"rank_pattern\":{{{}}}",
                list(large(), |name| format!("\"{name}\":1"))
            )),
        ),
        (
            "adapter: layers",
            PEFT,
            named(&format!(
                ",\"layers_to_transform\":[{}]",
                (0..large() / 8)
                    .map(|n| n.to_string())
                    .collect::<Vec<_>>()
                    .join(",")
            )),
        ),
        (
            "adapter: unknown fields",
            PEFT,
            named(&format!(
                ",{}",
                list(large(), |name| format!("\"{name}\":0"))
            )),
        ),
    ]);
}

/// Line 32 of tests/suite/portable/README.md, for JSON state dicts.
#[test]
fn opening_holds_little_memory_of_json() {
    let zeros = same("0");
    let document = |encoding: &str, tensors: &str, more: &str| {
        format!(r#"{{"format":"tabtune.torch_state_dict_json","version":1,"encoding":"{encoding}","state_dict":{{{tensors}}}{more}}}"#)
            .into_bytes()
    };
    let tensor = |name: &str, values: &str| {
        format!(
            r#""{name}":{{"dtype":"U64","shape":[{}],{values}}}"#,
            large() / 2 + 1
        )
    };
    let small = |dtype: &'static str, values: &'static str| {
        move |name: String| format!(r#""{name}":{{"dtype":"{dtype}","shape":[0],{values}}}"#)
    };
    let most = (0..50_000)
        .map(|n| small("U8", "\"data\":\"\"")(name(n)))
        .collect::<Vec<_>>()
        .join(",");
    let files = [
        (
            "json: values",
            document(
                "numbers",
                &tensor("a", &format!("\"values\":[{zeros}]")),
                "",
            ),
        ),
        (
            "json: no numbers",
            document(
                "numbers",
                &tensor("a", &format!("\"values\":[{}]", same("\"\""))),
                "",
            ),
        ),
        (
            "json: lists",
            document(
                "numbers",
                &tensor("a", &format!("\"values\":[{}]", same("[]"))),
                "",
            ),
        ),
        (
            "json: zeros in a shape",
            document(
                "base64",
                &format!(r#""a":{{"dtype":"U8","shape":[{zeros}],"data":""}}"#),
                "",
            ),
        ),
        ("json: many tensors", document("base64", &most, "")),
        (
            "json: more tensors than there may be",
            document("base64", &list(large(), small("U8", "\"data\":\"\"")), ""),
        ),
        (
            "json: tensors that are none",
            document("base64", &list(large(), |name| format!("\"{name}\":0")), ""),
        ),
        (
            "json: an unknown field",
            document("base64", "", &format!(",\"x\":[{zeros}]")),
        ),
        (
            "json: digests",
            document(
                "base64",
                "",
                &format!(
                    ",\"digests\":{{{}}}",
                    list(large(), |name| format!("\"{name}\":0"))
                ),
            ),
        ),
        (
            "json: a manifest of zeros",
            document("base64", "", &format!(",\"manifest\":[{zeros}]")),
        ),
        ("json: another document", format!("[{zeros}]").into_bytes()),
    ];
    check_all(
        files
            .into_iter()
            .flat_map(|(what, file)| [(what, JSON, file.clone()), (what, PORTABLE_JSON, file)]),
    );
}

/// Bytes that opening a vocabulary may take in addition to its lists.
const VOCABULARY: u64 = 64 << 20;

/// Opens a vocabulary of Qwen's size, half of it merges: no tree of it exists while it is opened.
#[test]
fn opening_holds_little_memory_of_vocabularies() {
    let half = 75_968u32;
    let parts = || {
        let single = (0..half).map(|id| format!("<{id}>"));
        let tokens = single
            .chain((1..=half).map(|id| format!("<{}><{}>", id - 1, id % half)))
            .collect();
        let merges = (1..=half)
            .map(|id| format!("<{}> <{}>", id - 1, id % half))
            .collect();
        let model = PartsModel::ByteLevelBpe {
            merges,
            pre: "qwen2".into(),
        };
        TokenizerParts {
            model,
            tokens,
            types: Vec::new(),
            ..crate::tokenizer::byte_level("qwen2")
        }
    };
    let given = parts();
    let (tokenizer, held) = most_held(|| Tokenizer::from_parts(given).unwrap());
    println!("vocabulary: {} MiB", held >> 20);
    assert_eq!(tokenizer.vocab_size(), 2 * half as usize);
    assert!(held <= VOCABULARY, "{held} bytes");
}

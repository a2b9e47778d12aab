//! Reads `model.safetensors.index.json`, which states the shard of each tensor.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::files::{Files, MAX_DOCUMENT_BYTES, find};
use super::json_document::parsed;
use super::refusals::refused;
use crate::error::{Refusal, Result, Warning, Word, add_refusal, refuse_all, word};
use crate::formats::{ByteSource, Json, SafetensorsFile, base_name, read_document};

const MAX_SHARDS: usize = 10_000;
const MAX_SHARD_NAME_BYTES: usize = 255;

/// Position among the files, and header, of each shard.
pub(super) type Shards = Vec<(usize, SafetensorsFile)>;

/// Reads the index, then the header of every shard that it names, found among `files` by name. A warning says that the index states another
/// size than the shards have.
pub(super) fn open_index(
    index: &dyn ByteSource,
    files: &Files,
) -> Result<(Shards, Option<Warning>)> {
    let bytes = read_document(index, MAX_DOCUMENT_BYTES)?;
    let (map, total_size) = read(&bytes).map_err(|error| error.in_file(index.name()))?;
    let refuse = |code: Word, subject: &str| refused(code, index.name(), subject);
    let (mut shards, mut absent) = (Vec::new(), Vec::new());
    for shard in map.values().map(AsRef::as_ref).collect::<BTreeSet<_>>() {
        match find(files, shard) {
            Some(at) => shards.push((at, SafetensorsFile::open(&files[at])?)),
            None => absent.push(refuse(word!("index.shard.missing"), shard)),
        }
    }
    refuse_all(absent)?;
    compare(&map, &shards, files, refuse)?;
    let tensors = shards.iter().flat_map(|(_, shard)| &shard.tensors);
    let total: u64 = tensors.map(|tensor| tensor.end() - tensor.begin).sum();
    let differs = total_size.is_some_and(|stated| stated.count() != Some(total));
    let warning = differs.then(|| Warning::new(word!("index.total-size"), "total_size"));
    Ok((shards, warning))
}

/// Shard of each tensor.
type Map<'a> = BTreeMap<Cow<'a, str>, Cow<'a, str>>;

/// Reads the shard of each tensor, and the stated size of all tensors.
fn read(bytes: &[u8]) -> Result<(Map<'_>, Option<Json<'_>>)> {
    let codes = [
        word!("index.json"),
        word!("index.depth"),
        word!("index.key.duplicate"),
    ];
    let document = parsed(bytes, codes, Some("weight_map"))?;
    let typed = |subject: &str, expected: &str| {
        Refusal::new(word!("index.field.type"))
            .subject(subject)
            .expected(expected)
    };
    if document.object().is_none() {
        return Err(typed("", "an object").into());
    }
    let [map, metadata] = document.fields(["weight_map", "metadata"]);
    let entries = map
        .ok_or_else(|| Refusal::new(word!("index.field.missing")).subject("weight_map"))?
        .object()
        .ok_or_else(|| typed("weight_map", "an object"))?;
    let mut map = Map::new();
    for (tensor, shard) in entries {
        let shard = shard.text().ok_or_else(|| typed(&tensor, "text"))?;
        if !is_shard_name(&shard) {
            return Err(Refusal::new(word!("index.shard.name"))
                .subject(&shard)
                .expected("a plain file name that ends in .safetensors")
                .into());
        }
        map.insert(tensor, shard);
    }
    let shards = map.values().collect::<BTreeSet<_>>().len();
    if shards > MAX_SHARDS {
        return Err(Refusal::new(word!("index.count.limit"))
            .expected(format!("at most {MAX_SHARDS} shards"))
            .found(shards)
            .into());
    }
    Ok((
        map,
        metadata.and_then(|metadata| metadata.get("total_size")),
    ))
}

fn is_shard_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    name.bytes().all(is_plain)
        && !name.starts_with('.')
        && name.len() <= MAX_SHARD_NAME_BYTES
        && name.ends_with(".safetensors")
}

/// Lists all disagreements of every kind; the kinds come in a fixed order.
fn compare(
    map: &Map<'_>,
    shards: &Shards,
    files: &Files,
    refuse: impl Fn(Word, &str) -> Refusal,
) -> Result<()> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (at, shard) in shards {
        for tensor in &shard.tensors {
            let shard = base_name(files[*at].name());
            found.entry(&tensor.name).or_default().push(shard);
        }
    }
    let [mut twice, mut elsewhere, mut missing, mut unlisted]: [Vec<Refusal>; 4] =
        Default::default();
    for (tensor, shards) in &found {
        match (shards.as_slice(), map.get(*tensor)) {
            ([_, _, ..], _) => {
                twice.push(refuse(word!("index.tensor.duplicate"), tensor).found(shards.join(", ")))
            }
            ([is], Some(said)) if is != said => elsewhere.push(
                refuse(word!("index.tensor.wrong-shard"), tensor)
                    .expected(said)
                    .found(is),
            ),
            (_, None) => unlisted.push(refuse(word!("index.tensor.unlisted"), tensor)),
            _ => {}
        }
    }
    for tensor in map.keys().filter(|name| !found.contains_key(name.as_ref())) {
        add_refusal(&mut missing, refuse(word!("index.tensor.missing"), tensor));
    }
    let all = [twice, elsewhere, missing, unlisted];
    refuse_all(all.into_iter().flatten().collect())
}

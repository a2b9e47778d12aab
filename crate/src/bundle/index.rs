//! Reads `model.safetensors.index.json`, which states the shard of each tensor.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::files::MAX_DOCUMENT_BYTES;
use crate::error::{Error, Refusal, Result, Warning, Word, add_refusal, word};
use crate::formats::json::MAX_DEPTH;
use crate::formats::{
    ByteSource, Json, JsonFault, SafetensorsFile, describe_flaw, foreign, json, read_document,
};

const MAX_SHARDS: usize = 10_000;
const MAX_SHARD_NAME_BYTES: usize = 255;

/// A sharded model whose index and shards agree.
#[derive(Debug)]
pub(super) struct ShardedFiles {
    /// Position among the sources, and header, of each shard.
    pub(super) shards: Vec<(usize, SafetensorsFile)>,
    pub(super) warnings: Vec<Warning>,
}

/// Reads the index, then the header of every shard that it names, found among `files` by name.
pub(super) fn open_index(
    index: &dyn ByteSource,
    files: &[&dyn ByteSource],
) -> Result<ShardedFiles> {
    let named = |refusal: Refusal| Error::from(refusal.of(index.name()));
    let bytes = read_document(index, MAX_DOCUMENT_BYTES)?;
    let not_json =
        |at: usize| describe_flaw(Refusal::new(word!("index.json")).at(at as u64), &bytes);
    let text = std::str::from_utf8(&bytes).map_err(|e| named(not_json(e.valid_up_to())))?;
    let document = json::parse(text, MAX_DEPTH).map_err(|fault| {
        named(match fault {
            JsonFault::Syntax { at } => not_json(at),
            JsonFault::Depth { at } => Refusal::new(word!("index.depth")).at(at as u64),
            JsonFault::Duplicate { at, path } => Refusal::new(word!("index.key.duplicate"))
                .subject(&path)
                .at(at as u64),
        })
    })?;
    if document.get("weight_map").is_none() && foreign(&bytes).is_some() {
        // A hub writes its messages as JSON, too.
        return Err(named(not_json(0)));
    }
    let map = weight_map(document).map_err(|error| error.in_file(index.name()))?;
    let mut shards = Vec::new();
    let mut absent = Vec::new();
    let wanted: BTreeSet<&str> = map.iter().map(|(_, shard)| shard.as_ref()).collect();
    for shard in wanted {
        match files
            .iter()
            .position(|file| crate::formats::base_name(file.name()) == shard)
        {
            Some(at) => shards.push((at, SafetensorsFile::open(files[at])?)),
            None => absent.push(
                Refusal::new(word!("index.shard.missing"))
                    .of(index.name())
                    .subject(shard),
            ),
        }
    }
    if !absent.is_empty() {
        return Err(Error::Refused(absent));
    }
    let mut warnings: Vec<Warning> = shards
        .iter()
        .flat_map(|(_, shard)| shard.warnings.clone())
        .collect();
    compare(&map, &shards, files, index.name())?;
    let total: u64 = shards
        .iter()
        .flat_map(|(_, shard)| &shard.tensors)
        .map(|tensor| tensor.end() - tensor.begin)
        .sum();
    let stated = document
        .get("metadata")
        .and_then(|metadata| metadata.get("total_size"));
    if stated.is_some_and(|stated| stated.count() != Some(total)) {
        warnings.push(Warning::new(word!("index.total-size"), "total_size"));
    }
    Ok(ShardedFiles { shards, warnings })
}

/// Shard of each tensor, ascending by tensor.
type Map<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

fn weight_map(document: Json<'_>) -> Result<Map<'_>> {
    let typed = |subject: &str| Refusal::new(word!("index.field.type")).subject(subject);
    if document.object().is_none() {
        return Err(typed("").expected("an object").into());
    }
    let map = document
        .get("weight_map")
        .ok_or_else(|| Refusal::new(word!("index.field.missing")).subject("weight_map"))?;
    let entries = map
        .object()
        .ok_or_else(|| typed("weight_map").expected("an object"))?;
    let mut out = Vec::with_capacity(entries.clone().count());
    for (tensor, shard) in entries {
        let shard = shard
            .text()
            .ok_or_else(|| typed(&tensor).expected("text"))?;
        if !is_shard_name(&shard) {
            return Err(Refusal::new(word!("index.shard.name"))
                .subject(&shard)
                .expected("a plain file name that ends in .safetensors")
                .into());
        }
        out.push((tensor, shard));
    }
    out.sort_unstable_by(|a, b| a.1.cmp(&b.1));
    let shards = out.chunk_by(|a, b| a.1 == b.1).count();
    if shards > MAX_SHARDS {
        return Err(Refusal::new(word!("index.count.limit"))
            .expected(format!("at most {MAX_SHARDS} shards"))
            .found(shards)
            .into());
    }
    out.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(out)
}

fn is_shard_name(name: &str) -> bool {
    let plain = name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    plain
        && !name.starts_with('.')
        && name.len() <= MAX_SHARD_NAME_BYTES
        && name
            .strip_suffix(".safetensors")
            .is_some_and(|stem| !stem.is_empty())
}

/// Lists all disagreements of every kind; the kinds come in a fixed order.
fn compare(
    map: &Map<'_>,
    shards: &[(usize, SafetensorsFile)],
    files: &[&dyn ByteSource],
    index: &str,
) -> Result<()> {
    let shard_name = |at: usize| {
        files
            .get(at)
            .map_or("", |file| crate::formats::base_name(file.name()))
    };
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (at, shard) in shards {
        for tensor in &shard.tensors {
            found.entry(&tensor.name).or_default().push(shard_name(*at));
        }
    }
    let said = |tensor: &str| {
        map.binary_search_by(|(name, _)| name.as_ref().cmp(tensor))
            .ok()
            .and_then(|at| map.get(at))
    };
    let refuse = |code: Word, tensor: &str| Refusal::new(code).of(index).subject(tensor);
    let mut lists: [Vec<Refusal>; 4] = Default::default();
    for (tensor, shards) in &found {
        match (shards.as_slice(), said(tensor)) {
            ([_, _, ..], _) => lists[0]
                .push(refuse(word!("index.tensor.duplicate"), tensor).found(shards.join(", "))),
            ([is], Some((_, said))) if is != said => lists[1].push(
                refuse(word!("index.tensor.wrong-shard"), tensor)
                    .expected(said)
                    .found(is),
            ),
            (_, None) => lists[3].push(refuse(word!("index.tensor.unlisted"), tensor)),
            _ => {}
        }
    }
    for (tensor, _) in map
        .iter()
        .filter(|(tensor, _)| !found.contains_key(tensor.as_ref()))
    {
        add_refusal(&mut lists[2], refuse(word!("index.tensor.missing"), tensor));
    }
    let all: Vec<Refusal> = lists.into_iter().flatten().collect();
    if all.is_empty() {
        Ok(())
    } else {
        Err(Error::Refused(all))
    }
}

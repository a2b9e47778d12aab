//! Joins the parts of a split GGUF file, in any order, into one file.

use std::collections::BTreeMap;

use super::cursor::refuse;
use super::header::GgufFile;
use super::value::GgufValue;
use crate::error::{Refusal, Result, shown, word};
use crate::formats::refuse_if;

/// Maximum number of names that a message lists.
const LISTED: usize = 8;

impl GgufFile {
    /// Number of parts that the file states, if it is more than one.
    fn split_count(&self) -> Option<u64> {
        self.get("split.count")
            .and_then(GgufValue::count)
            .filter(|count| *count > 1)
    }

    /// True if the file is one part of several.
    pub(crate) fn is_part(&self) -> bool {
        self.split_count().is_some()
    }

    /// Refuses a part that is given without the others.
    pub(crate) fn check_whole(&self, name: &str) -> Result<()> {
        let Some(count) = self.split_count() else {
            return Ok(());
        };
        let own = self.get("split.no").and_then(GgufValue::count);
        Err(incomplete(count, &own.into_iter().collect::<Vec<_>>(), name).into())
    }
}

/// Part of a name before an ending, in small or capital letters.
fn before<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    let (rest, found) = name.split_at_checked(name.len().checked_sub(ending.len())?)?;
    found.eq_ignore_ascii_case(ending).then_some(rest)
}

/// Name of a part without its number, and the number of parts: `m` and `00002` of `m-00001-of-00002.gguf`. Letters may be capitals.
pub fn part_of<'a>(name: &'a str, ending: &str) -> Option<(&'a str, &'a str)> {
    const DIGITS: usize = 5;
    let is_number =
        |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = before(name, ending)?;
    let (rest, count) = parts.split_at_checked(parts.len().checked_sub(DIGITS)?)?;
    let (stem, number) = before(rest, "-of-")?.rsplit_once('-')?;
    (is_number(number) && is_number(count)).then_some((stem, count))
}

/// Name of a part without its number and the number of parts; the name of another file without its ending.
pub(crate) fn stem_of(name: &str) -> &str {
    let whole = before(name, ".gguf").unwrap_or(name);
    part_of(whole, "").map_or(whole, |(stem, _)| stem)
}

/// Refusal that names the missing parts, derived from the name of one that is present.
fn incomplete(count: u64, present: &[u64], name: &str) -> Refusal {
    let stem = stem_of(name);
    let capitals = name.ends_with(".GGUF");
    let mut absent = (0..count).filter(|n| !present.contains(n));
    let mut parts: Vec<String> = Vec::new();
    for n in absent.by_ref().take(LISTED) {
        // The numbers in a file may be arbitrary; names count from 1.
        let numbers = format!("-{:05}-of-{count:05}.gguf", u128::from(n) + 1);
        let numbers = if capitals {
            numbers.to_ascii_uppercase()
        } else {
            numbers
        };
        parts.push(format!("{}{numbers}", shown(stem)));
    }
    if absent.next().is_some() {
        parts.push("…".into());
    }
    let refusal = refuse(word!("gguf.split.incomplete"))
        .of(name)
        .expected(format!("{count} parts"))
        .found(present.len());
    refusal.hint(format!("missing: {}", parts.join(", ")))
}

/// Joins all parts into one file and returns it with the source index of each of its tensors. The metadata are those of the first part.
pub(crate) fn join_parts(
    parts: Vec<(usize, GgufFile)>,
    name: impl Fn(usize) -> String,
) -> Result<(GgufFile, Vec<usize>)> {
    let mut by_number: BTreeMap<u64, (usize, GgufFile)> = BTreeMap::new();
    let mut count = 1;
    for (position, (at, part)) in parts.into_iter().enumerate() {
        let stated = part.split_count().unwrap_or(1);
        let mismatch = |subject: &str| {
            refuse(word!("gguf.split.mismatch"))
                .of(&name(at))
                .subject(subject)
        };
        refuse_if(position > 0 && stated != count, || {
            mismatch("split.count").expected(count).found(stated)
        })?;
        count = stated;
        let number = match part.get("split.no").and_then(GgufValue::count) {
            _ if count == 1 => 0,
            Some(number) if number < count => number,
            found => {
                let found = found.map_or_else(|| "none".to_string(), |n| n.to_string());
                return Err(mismatch("split.no")
                    .expected(format!("less than {count}"))
                    .found(found)
                    .into());
            }
        };
        refuse_if(by_number.insert(number, (at, part)).is_some(), || {
            mismatch("split.no")
                .expected("each part once")
                .found(format!("part {} twice", number + 1))
        })?;
    }
    refuse_if((by_number.len() as u64) < count, || {
        let present: Vec<u64> = by_number.keys().copied().collect();
        let first = by_number.values().next().map(|(at, _)| name(*at));
        incomplete(count, &present, &first.unwrap_or_default())
    })?;
    let mut joined: Option<GgufFile> = None;
    let (mut homes, mut names) = (Vec::new(), std::collections::HashSet::new());
    for (at, part) in by_number.into_values() {
        for tensor in &part.tensors {
            refuse_if(!names.insert(tensor.name.clone()), || {
                refuse(word!("gguf.name.duplicate"))
                    .of(&name(at))
                    .subject(&tensor.name)
            })?;
        }
        homes.extend(std::iter::repeat_n(at, part.tensors.len()));
        match &mut joined {
            None => joined = Some(part),
            Some(whole) => {
                whole.tensors.extend(part.tensors);
                whole.warnings.extend(part.warnings);
            }
        }
    }
    let whole = joined.ok_or_else(|| refuse(word!("bundle.empty")))?;
    let stated = whole
        .get("split.tensors.count")
        .and_then(GgufValue::count)
        .filter(|_| count > 1);
    let found = whole.tensors.len() as u64;
    let stated = stated.unwrap_or(found);
    refuse_if(stated != found, || {
        refuse(word!("gguf.split.mismatch"))
            .of(&name(homes.first().copied().unwrap_or(0)))
            .subject("split.tensors.count")
            .expected(stated)
            .found(found)
    })?;
    Ok((whole, homes))
}

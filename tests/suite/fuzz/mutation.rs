//! Makes files from other files by a fixed sequence of changes.

use serde_json::Value;

/// SplitMix64: the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `n`; 0 for 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n.max(1) as u64) as usize
    }

    pub fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// Numbers on both sides of limits.
const NUMBERS: [u64; 30] = [
    0,
    1,
    2,
    3,
    8,
    9,
    31,
    32,
    33,
    64,
    127,
    128,
    255,
    256,
    1024,
    1025,
    65_535,
    65_536,
    100_000,
    100_001,
    (1 << 20) + 1,
    (1 << 24) + 1,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 61,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// Maximum length of a file in bytes; longer ones are cut.
const MOST_BYTES: usize = 32 << 10;

/// Chooses a part of `bytes` that is at most 64 long.
fn span(random: &mut Random, bytes: &[u8]) -> (usize, usize) {
    let at = random.below(bytes.len());
    (at, (at + 1 + random.below(64)).min(bytes.len()))
}

fn one_change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8], words: &[&str]) {
    let at = random.below(bytes.len());
    match random.below(12) {
        0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        1 if !bytes.is_empty() => bytes[at] = random.word() as u8,
        2 if !bytes.is_empty() => bytes[at] = *random.of(b"\0\x01\x7f\x80\xff\"{}[]:,\\09-"),
        3 => {
            let number = random.of(&NUMBERS).to_le_bytes();
            let width = (1 << random.below(4)).min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&number[..width]);
        }
        4 if bytes.len() >= at + 8 => {
            let number = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
            let near = number.wrapping_add(random.below(9) as u64).wrapping_sub(4);
            bytes[at..at + 8].copy_from_slice(&near.to_le_bytes());
        }
        5 => {
            let word = random.of(words).as_bytes();
            bytes.splice(at..at, word.iter().copied());
        }
        6 => {
            let (from, to) = span(random, bytes);
            bytes.drain(from..to);
        }
        7 => {
            let (from, to) = span(random, bytes);
            let copy = bytes[from..to].to_vec();
            bytes.splice(at..at, copy);
        }
        8 => {
            let (from, to) = span(random, other);
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        9 => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len())..]);
        }
        10 => {
            // A decimal number.
            let start = (at..bytes.len())
                .find(|&n| bytes[n].is_ascii_digit())
                .unwrap_or(at);
            let end = (start..bytes.len())
                .find(|&n| !bytes[n].is_ascii_digit())
                .unwrap_or(bytes.len());
            let number = random.of(&NUMBERS).to_string();
            bytes.splice(start..end, number.into_bytes());
        }
        11 => {
            let (from, to) = span(random, bytes);
            bytes[from..to].reverse();
        }
        _ => bytes.truncate(at),
    }
    bytes.truncate(MOST_BYTES);
}

/// Makes a file from one of `files` with one to eight changes.
pub fn mutated(random: &mut Random, files: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut bytes = random.of(files).clone();
    let other = random.of(files);
    for _ in 0..1 << random.below(4) {
        one_change(random, &mut bytes, other, words);
    }
    bytes
}

/// Returns the number of values in a document, including containers.
fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(entries) => entries.values().map(count_values).sum(),
        _ => 0,
    }
}

/// Returns value number `n` of a document, counted from the document itself.
fn value_at(value: &mut Value, mut n: usize) -> &mut Value {
    if n == 0 {
        return value;
    }
    n -= 1;
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(entries) => entries.values_mut().collect(),
        _ => Vec::new(),
    };
    for value in inner {
        let count = count_values(value);
        if n < count {
            return value_at(value, n);
        }
        n -= count;
    }
    unreachable!("the document has this value")
}

/// Returns a word without JSON's signs: the text between its first two quotes, if there are any.
fn plain<'a>(word: &&'a str) -> &'a str {
    word.split('"').nth(1).unwrap_or(word)
}

fn one_change_of_json(
    random: &mut Random,
    document: &mut Value,
    other: &mut Value,
    words: &[&str],
) {
    let count = count_values(document);
    let taken = value_at(other, random.below(count_values(other))).clone();
    let value = value_at(document, random.below(count));
    match (random.below(12), value) {
        (0 | 1, Value::Object(entries)) if !entries.is_empty() => {
            let key = entries
                .keys()
                .nth(random.below(entries.len()))
                .cloned()
                .unwrap_or_default();
            let value = entries.remove(&key);
            // Removed, or renamed.
            if random.below(2) == 0 {
                entries.insert(
                    plain(random.of(words)).to_string(),
                    value.unwrap_or_default(),
                );
            }
        }
        (0 | 1, Value::Array(items)) if !items.is_empty() => {
            drop(items.remove(random.below(items.len())))
        }
        (2 | 3, Value::Object(entries)) => {
            drop(entries.insert(plain(random.of(words)).to_string(), taken))
        }
        (2 | 3, Value::Array(items)) => items.push(taken),
        (4, value) => {
            *value = (0..1 + random.below(40)).fold(taken, |inner, _| Value::Array(vec![inner]))
        }
        (5, value) => *value = (*random.of(&NUMBERS)).into(),
        (6, value) => *value = (-((*random.of(&NUMBERS) >> 1) as i64)).into(),
        (7, value) => {
            *value = (random.of(&[0.5, -1.5, 1e300, 1e-50, 65504.0]))
                .to_owned()
                .into()
        }
        (8, value) => *value = plain(random.of(words)).into(),
        (9, value) => {
            *value = random
                .of(&[
                    Value::Null,
                    true.into(),
                    false.into(),
                    Value::Array(Vec::new()),
                    "".into(),
                ])
                .clone()
        }
        (10, value) => *value = "x".repeat(random.below(2_000)).into(),
        (_, value) => *value = taken,
    }
}

/// Changes JSON as [`mutated`] does, but half of the files value by value, so that they remain JSON.
pub fn mutated_json(random: &mut Random, files: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let parsed = |file: &Vec<u8>| serde_json::from_slice::<Value>(file).ok();
    let pair = (parsed(random.of(files)), parsed(random.of(files)));
    let (Some(mut document), Some(mut other), 0) = (pair.0, pair.1, random.below(2)) else {
        return mutated(random, files, words);
    };
    for _ in 0..1 << random.below(4) {
        one_change_of_json(random, &mut document, &mut other, words);
    }
    let mut bytes = document.to_string().into_bytes();
    bytes.truncate(MOST_BYTES);
    bytes
}

/// Changes safetensors files as [`mutated_json`] does. The length of the header is mostly that of its text, and the data is that of the file.
pub fn mutated_safetensors(random: &mut Random, files: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let whole = random.of(files);
    let start = whole.first_chunk().map_or(0, |length| {
        u64::from_le_bytes(*length).min(whole.len() as u64 - 8) as usize + 8
    });
    if random.below(4) == 0 || start == 0 {
        return mutated(random, files, words);
    }
    let (header, data) = (vec![whole[8..start].to_vec()], &whole[start..]);
    let header = mutated_json(random, &header, words);
    [&(header.len() as u64).to_le_bytes(), &header[..], data].concat()
}

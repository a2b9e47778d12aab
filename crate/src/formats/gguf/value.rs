//! Metadata values of GGUF, kept as the bytes of the file.

/// One metadata value: its type and its bytes exactly as in the file. Values exist only after they passed the header checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GgufValue {
    pub(crate) kind: u32,
    pub(crate) bytes: Vec<u8>,
}

const KIND_U32: u32 = 4;
const KIND_I32: u32 = 5;
const KIND_F32: u32 = 6;
pub(crate) const KIND_BOOL: u32 = 7;
pub(crate) const KIND_TEXT: u32 = 8;
pub(crate) const KIND_ARRAY: u32 = 9;
pub(crate) const KIND_LAST: u32 = 12;

/// Number of bytes of a plain value; `None` for texts and arrays.
pub(crate) fn plain_bytes(kind: u32) -> Option<usize> {
    match kind {
        0 | 1 | KIND_BOOL => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Appends a text in GGUF's encoding: its length, then its bytes.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

/// Constructors of values to be written.
impl GgufValue {
    /// Creates a text.
    pub fn of_text(text: &str) -> Self {
        let mut bytes = Vec::new();
        put_text(&mut bytes, text.as_bytes());
        Self {
            kind: KIND_TEXT,
            bytes,
        }
    }

    /// Creates an unsigned 32-bit integer.
    pub fn of_u32(value: u32) -> Self {
        Self {
            kind: KIND_U32,
            bytes: value.to_le_bytes().to_vec(),
        }
    }

    /// Creates an unsigned 32-bit integer of a model's count.
    pub(crate) fn of_count(value: usize) -> Self {
        Self::of_u32(u32::try_from(value).expect("a model's counts are at most 2^31 - 1"))
    }

    /// Creates a 32-bit float.
    pub fn of_f32(value: f32) -> Self {
        Self {
            kind: KIND_F32,
            bytes: value.to_le_bytes().to_vec(),
        }
    }

    /// Creates a bool.
    pub fn of_bool(value: bool) -> Self {
        Self {
            kind: KIND_BOOL,
            bytes: vec![u8::from(value)],
        }
    }

    /// Creates an array of texts.
    pub fn of_texts<T: AsRef<str>>(texts: &[T]) -> Self {
        Self::of_array(KIND_TEXT, texts, |out, text| {
            put_text(out, text.as_ref().as_bytes())
        })
    }

    /// Creates an array of 32-bit integers.
    pub fn of_i32s(values: &[i32]) -> Self {
        Self::of_array(KIND_I32, values, |out, value| {
            out.extend(value.to_le_bytes())
        })
    }

    /// Creates an array of 32-bit floats.
    pub fn of_f32s(values: &[f32]) -> Self {
        Self::of_array(KIND_F32, values, |out, value| {
            out.extend(value.to_le_bytes())
        })
    }

    /// Creates an array of bools.
    pub(crate) fn of_bools(values: &[bool]) -> Self {
        Self::of_array(KIND_BOOL, values, |out, value| out.push(u8::from(*value)))
    }

    fn of_array<T>(kind: u32, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((items.len() as u64).to_le_bytes());
        items.iter().for_each(|item| put(&mut bytes, item));
        Self {
            kind: KIND_ARRAY,
            bytes,
        }
    }
}

impl GgufValue {
    /// Type number in GGUF.
    pub fn kind(&self) -> u32 {
        self.kind
    }

    /// Bytes of the value as in the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text; `None` for another value, and for bytes that are not UTF-8.
    pub fn text(&self) -> Option<&str> {
        if self.kind != KIND_TEXT {
            return None;
        }
        std::str::from_utf8(self.bytes.get(8..)?).ok()
    }

    /// The flag; `None` for another value.
    pub fn bool(&self) -> Option<bool> {
        (self.kind == KIND_BOOL).then(|| self.bytes.first() == Some(&1))
    }

    /// True if the value is 0, false, empty, or a list of nothing else.
    pub(crate) fn is_zero(&self) -> bool {
        let head = match self.kind {
            KIND_TEXT => 8,
            KIND_ARRAY => 12,
            _ => 0,
        };
        self.bytes.iter().skip(head).all(|byte| *byte == 0)
    }

    /// The number; `None` for another type than u32.
    pub(crate) fn as_u32(&self) -> Option<u32> {
        let value = u32::from_le_bytes(exact(&self.bytes)?);
        (self.kind == KIND_U32).then_some(value)
    }

    /// The number; `None` for a negative one, and for a value that is no integer.
    pub fn count(&self) -> Option<u64> {
        integer(self.kind, &self.bytes)
    }

    /// Any number as f64; a 32-bit float becomes the shortest decimal that reads back to it, so that 1e-5 stays 1e-5.
    pub fn number(&self) -> Option<f64> {
        match self.kind {
            6 => {
                let value = f32::from_le_bytes(exact(&self.bytes)?);
                value.to_string().parse().ok()
            }
            12 => Some(f64::from_le_bytes(exact(&self.bytes)?)),
            _ => self.count().map(|count| count as f64),
        }
    }

    /// Item type and length of an array; `None` for another value.
    pub fn array(&self) -> Option<(u32, u64)> {
        if self.kind != KIND_ARRAY {
            return None;
        }
        let kind = u32::from_le_bytes(exact(self.bytes.get(..4)?)?);
        let count = u64::from_le_bytes(exact(self.bytes.get(4..12)?)?);
        Some((kind, count))
    }

    /// Items of an array of bools; `None` for another value.
    pub(crate) fn bools(&self) -> Option<Vec<bool>> {
        let (KIND_BOOL, _) = self.array()? else {
            return None;
        };
        let items = self.bytes.get(12..)?.iter();
        Some(items.map(|byte| *byte != 0).collect())
    }

    /// Items of an array of texts, as bytes; `None` for another value.
    pub fn texts(&self) -> Option<Vec<&[u8]>> {
        let (KIND_TEXT, count) = self.array()? else {
            return None;
        };
        let mut rest = self.bytes.get(12..)?;
        // Each item is preceded by its length.
        let mut out = Vec::with_capacity(usize::try_from(count).ok()?.min(rest.len() / 8));
        while !rest.is_empty() {
            let (len, tail) = rest.split_at_checked(8)?;
            let len = usize::try_from(u64::from_le_bytes(exact(len)?)).ok()?;
            let (text, tail) = tail.split_at_checked(len)?;
            out.push(text);
            rest = tail;
        }
        Some(out)
    }

    /// Items of an array of 32-bit floats; `None` for another value.
    pub fn floats(&self) -> Option<Vec<f32>> {
        let (6, _) = self.array()? else { return None };
        let (items, _) = self.bytes.get(12..)?.as_chunks::<4>();
        let items = items.iter().map(|bytes| f32::from_le_bytes(*bytes));
        Some(items.collect())
    }

    /// Items of an array of integers; `None` for another value. A negative one becomes `u64::MAX`, which is in no range.
    pub fn counts(&self) -> Option<Vec<u64>> {
        let (kind, _) = self.array()?;
        let size = plain_bytes(kind).filter(|_| !matches!(kind, 6 | KIND_BOOL | 12))?;
        let items = self.bytes.get(12..)?.chunks_exact(size);
        let counts = items.map(|bytes| integer(kind, bytes).unwrap_or(u64::MAX));
        Some(counts.collect())
    }
}

/// Exactly `N` bytes of a number.
fn exact<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// The value of an integer that is not negative.
fn integer(kind: u32, bytes: &[u8]) -> Option<u64> {
    Some(match kind {
        0 => u64::from(*bytes.first()?),
        1 => u64::try_from(i8::from_le_bytes(exact(bytes)?)).ok()?,
        2 => u64::from(u16::from_le_bytes(exact(bytes)?)),
        3 => u64::try_from(i16::from_le_bytes(exact(bytes)?)).ok()?,
        4 => u64::from(u32::from_le_bytes(exact(bytes)?)),
        5 => u64::try_from(i32::from_le_bytes(exact(bytes)?)).ok()?,
        10 => u64::from_le_bytes(exact(bytes)?),
        11 => u64::try_from(i64::from_le_bytes(exact(bytes)?)).ok()?,
        _ => return None,
    })
}

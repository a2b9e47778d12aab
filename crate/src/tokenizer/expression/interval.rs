//! Intervals: `{1,3}`.

use super::escape::Reader;
use super::{Result, unsaid};

/// Maximum number of repetitions in Oniguruma.
const MAX_REPEAT: u32 = 100_000;

/// Form of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `*`, `+`, `?`.
    Sign,
    /// `{3,5}`, `{3,}`, `{,5}`.
    Range,
    /// `{3}`.
    Exact,
    /// `{5,3}`, which is `{3,5}` without a way back.
    Swapped,
}

/// Reads an interval such as `{1,3}`; `None` where the brace is a character.
pub(super) fn interval(reader: &mut Reader) -> Result<Option<(u32, Option<u32>, Kind)>> {
    let mut after = reader.clone();
    after.next();
    let number = |reader: &mut Reader| {
        let given = reader.peek().is_some_and(|c| c.is_ascii_digit());
        match reader.digits(10, usize::MAX) {
            Some(number) if number <= MAX_REPEAT => Ok(Some(number)),
            None if !given => Ok(None),
            _ => unsaid("{…}", "it repeats more than 100000 times"),
        }
    };
    let low = number(&mut after)?;
    let comma = after.take(",");
    let high = if comma { number(&mut after)? } else { low };
    if (low.is_none() && high.is_none()) || !after.take("}") {
        return Ok(None);
    }
    *reader = after;
    let low = low.unwrap_or(0);
    Ok(Some(match high {
        Some(high) if low > high => (high, Some(low), Kind::Swapped),
        _ => (low, high, if comma { Kind::Range } else { Kind::Exact }),
    }))
}

//! Finds the byte of a text at which each token begins, from the bytes of the tokens' own texts.

use super::coverage::byte_of;

/// Returns the byte of the text at which each token begins. Tokens that share a character have the offsets of the whole character; each begins
/// where the one before has ended by its own bytes.
pub(super) fn starts(encoding: &tokenizers::Encoding, byte_level: bool) -> Vec<usize> {
    let (mut begun, mut length, mut shared) = (0, 0, 0);
    let place = |(&(start, end), token): (&(usize, usize), &String)| {
        let at = match start < shared {
            true => start
                .max(begun + length)
                .min(end.saturating_sub(1))
                .max(begun),
            false => start.max(begun),
        };
        (begun, length, shared) = (at, own_bytes(token, byte_level), end);
        at
    };
    let tokens = encoding.get_offsets().iter().zip(encoding.get_tokens());
    tokens.map(place).collect()
}

/// Returns the number of bytes that a token represents, if its text says so; 0 for other tokens, which hold whole characters.
fn own_bytes(token: &str, byte_level: bool) -> usize {
    match byte_of(token) {
        Some(_) => 1,
        None if byte_level => token.chars().count(),
        None => 0,
    }
}

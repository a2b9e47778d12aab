//! Globs over tensor names: `*` matches any text (dots too), `?` one character, `{a,b}` either text; the whole name must match.

/// Maximum length of a pattern in bytes.
const MAX_BYTES: usize = 1_024;
/// Maximum number of alternatives in all braces of a pattern, multiplied.
const MAX_ALTERNATIVES: usize = 1_024;

/// Meaning of one character of a pattern.
enum Place {
    /// Matches this character.
    Exactly(char),
    /// Matches one character.
    One,
    /// Matches any text.
    Any,
    /// Opens a brace; has the index at which each of its alternatives begins.
    Either(Vec<usize>),
    /// Ends an alternative; has the index at which the pattern continues.
    Behind(usize),
}

/// Returns the meaning of each character. Braces do not nest: one inside braces, or without its partner, matches itself.
fn places(pattern: &str) -> Vec<Place> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut close = None;
    let place = |(at, &c): (usize, &char)| match (c, close) {
        ('*', _) => Place::Any,
        ('?', _) => Place::One,
        (',', Some(end)) => Place::Behind(end + 1),
        ('}', Some(end)) => {
            close = None;
            Place::Behind(end + 1)
        }
        ('{', None) => match chars[at..].iter().position(|&c| c == '}') {
            Some(length) => {
                close = Some(at + length);
                let commas = (at..at + length).filter(|&comma| chars[comma] == ',');
                Place::Either(
                    std::iter::once(at)
                        .chain(commas)
                        .map(|before| before + 1)
                        .collect(),
                )
            }
            None => Place::Exactly('{'),
        },
        (c, _) => Place::Exactly(c),
    };
    chars.iter().enumerate().map(place).collect()
}

/// Marks `from`, and every place that can be reached from it without consuming a character of the name.
fn reach(places: &[Place], from: usize, reached: &mut [bool]) {
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut reached[at], true) {
            continue;
        }
        match places.get(at) {
            Some(Place::Any) => open.push(at + 1),
            Some(Place::Either(starts)) => open.extend(starts),
            Some(Place::Behind(next)) => open.push(*next),
            _ => {}
        }
    }
}

/// Returns true if the whole of `name` matches `pattern`. Takes time proportional to at most the product of their lengths.
///
/// ```
/// use tabtune::config::glob_matches;
///
/// assert!(glob_matches("model.layers.?.{mlp,self_attn}.*", "model.layers.0.mlp.up_proj.weight"));
/// assert!(!glob_matches("*.bias", "bias.weight"));
/// ```
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let places = places(pattern);
    let mut reached = vec![false; places.len() + 1];
    let mut next = reached.clone();
    reach(&places, 0, &mut reached);
    for c in name.chars() {
        next.fill(false);
        for (at, place) in places.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match place {
                Place::Any => reach(&places, at, &mut next),
                Place::One => reach(&places, at + 1, &mut next),
                Place::Exactly(own) if *own == c => reach(&places, at + 1, &mut next),
                _ => {}
            }
        }
        std::mem::swap(&mut reached, &mut next);
    }
    reached[places.len()]
}

/// Checks that a pattern has 1 to 1,024 bytes and at most 1,024 alternatives over all its braces.
pub fn check_glob(pattern: &str) -> bool {
    let either = |place: Place| {
        if let Place::Either(starts) = place {
            starts.len()
        } else {
            1
        }
    };
    (1..=MAX_BYTES).contains(&pattern.len())
        && places(pattern)
            .into_iter()
            .map(either)
            .fold(1, usize::saturating_mul)
            <= MAX_ALTERNATIVES
}

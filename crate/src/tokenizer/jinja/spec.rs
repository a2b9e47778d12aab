//! Python's format specifications, and numbers in their formats.

use minijinja::Error as JinjaError;
use minijinja::value::{Value, ValueKind};

use super::representation::{float_text, printed};
use super::values::wrong;

/// Maximum width and precision.
const WIDTH: usize = 1 << 10;

/// A format specification: `[[fill]align][sign][#][0][width][grouping][.precision][type]`.
#[derive(Default)]
pub(super) struct Spec {
    pub(super) fill: Option<char>,
    pub(super) align: Option<char>,
    pub(super) sign: Option<char>,
    pub(super) alternate: bool,
    pub(super) width: usize,
    pub(super) grouping: Option<char>,
    pub(super) precision: Option<usize>,
    pub(super) kind: Option<char>,
}

/// Takes the characters at the beginning of a text that satisfy `of`, and advances the text past them.
pub(super) fn taken<'a>(text: &mut &'a str, of: impl Fn(char) -> bool) -> &'a str {
    let (first, rest) = text.split_at(text.find(|c| !of(c)).unwrap_or(text.len()));
    *text = rest;
    first
}

pub(super) fn number(digits: &str) -> Result<Option<usize>, JinjaError> {
    if digits.is_empty() {
        return Ok(None);
    }
    digits
        .parse()
        .ok()
        .filter(|width| *width <= WIDTH)
        .map(Some)
        .ok_or_else(|| wrong(format!("format: a width above {WIDTH}")))
}

impl Spec {
    pub(super) fn parsed(text: &str) -> Result<Self, JinjaError> {
        let (mut spec, mut rest) = (Self::default(), text);
        let characters: Vec<char> = text.chars().take(2).collect();
        match characters.as_slice() {
            [fill, align, ..] if "<>=^".contains(*align) => {
                (spec.fill, spec.align) = (Some(*fill), Some(*align));
                rest = rest.get(fill.len_utf8() + 1..).unwrap_or_default();
            }
            [align, ..] if "<>=^".contains(*align) => {
                spec.align = Some(*align);
                rest = rest.get(1..).unwrap_or_default();
            }
            _ => {}
        }
        let mut one = |of: &str| {
            let found = rest.chars().next().filter(|c| of.contains(*c));
            rest = rest
                .get(found.map_or(0, char::len_utf8)..)
                .unwrap_or_default();
            found
        };
        spec.sign = one("+- ");
        spec.alternate = one("#").is_some();
        if one("0").is_some() {
            spec.fill = spec.fill.or(Some('0'));
            spec.align = spec.align.or(Some('='));
        }
        spec.width = number(taken(&mut rest, |c| c.is_ascii_digit()))?.unwrap_or(0);
        spec.grouping = rest.chars().next().filter(|c| ",_".contains(*c));
        rest = rest
            .get(usize::from(spec.grouping.is_some())..)
            .unwrap_or_default();
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            spec.precision = Some(
                number(taken(&mut rest, |c| c.is_ascii_digit()))?
                    .ok_or_else(|| wrong("format: no precision"))?,
            );
        }
        let mut kind = rest.chars();
        spec.kind = kind.next();
        if kind.as_str().is_empty() {
            Ok(spec)
        } else {
            Err(wrong(format!(
                "format: the specification {text:?} is not known"
            )))
        }
    }

    pub(super) fn of(&self, value: &Value) -> Result<String, JinjaError> {
        let float = matches!(self.kind, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%'));
        match value.kind() {
            ValueKind::Number | ValueKind::Bool if float => {
                self.of_float(f64::try_from(value.clone())?)
            }
            ValueKind::Number if !value.is_integer() => {
                self.of_float(f64::try_from(value.clone())?)
            }
            ValueKind::Number => self.of_integer(i128::try_from(value.clone())?),
            ValueKind::Bool if self.kind.is_some() => {
                self.of_integer(i128::try_from(value.clone())?)
            }
            ValueKind::String => self.of_text(value.as_str().unwrap_or_default()),
            _ if self.width == 0 && self.kind.is_none() => Ok(printed(value)),
            other => Err(wrong(format!(
                "format: a value of the kind {other} has no such specification"
            ))),
        }
    }

    pub(super) fn of_text(&self, text: &str) -> Result<String, JinjaError> {
        if !matches!(self.kind, None | Some('s' | 'c'))
            || self.sign.is_some()
            || self.align == Some('=')
        {
            return Err(wrong("format: a specification of numbers for a text"));
        }
        let text: String = text
            .chars()
            .take(self.precision.unwrap_or(usize::MAX))
            .collect();
        Ok(self.padded("", &text, '<'))
    }

    pub(super) fn of_integer(&self, value: i128) -> Result<String, JinjaError> {
        let size = value.unsigned_abs();
        let (prefix, digits) = match self.kind {
            None | Some('d' | 'n') => ("", size.to_string()),
            Some('b') => ("0b", format!("{size:b}")),
            Some('o') => ("0o", format!("{size:o}")),
            Some('x') => ("0x", format!("{size:x}")),
            Some('X') => ("0X", format!("{size:X}")),
            Some('c') => {
                let c = u32::try_from(value)
                    .ok()
                    .and_then(char::from_u32)
                    .ok_or_else(|| wrong("format: no character has this number"))?;
                return Ok(self.padded("", &c.to_string(), '<'));
            }
            Some(other) => return Err(wrong(format!("format: integers have no {other}"))),
        };
        let sign = self.sign_of(value < 0).to_owned() + if self.alternate { prefix } else { "" };
        let digits = format!(
            "{}{digits}",
            "0".repeat(self.precision.unwrap_or(0).saturating_sub(digits.len()))
        );
        Ok(self.padded(&sign, &self.grouped(&digits), '>'))
    }

    pub(super) fn of_float(&self, value: f64) -> Result<String, JinjaError> {
        let size = value.abs();
        let precision = self.precision.unwrap_or(6);
        let upper = matches!(self.kind, Some('E' | 'F' | 'G'));
        let digits = match self.kind.map(|kind| kind.to_ascii_lowercase()) {
            _ if !size.is_finite() => float_text(size),
            None if self.precision.is_none() => float_text(size),
            None => {
                let text = general(size, precision, self.alternate);
                if text.contains(['.', 'e']) {
                    text
                } else {
                    text + ".0"
                }
            }
            Some('f') => format!("{size:.precision$}"),
            Some('%') => format!("{:.precision$}%", size * 100.0),
            Some('e') => scientific(size, precision),
            Some('g') => general(size, precision, self.alternate),
            Some(other) => return Err(wrong(format!("format: floats have no {other}"))),
        };
        let digits = if upper { digits.to_uppercase() } else { digits };
        Ok(self.padded(
            self.sign_of(value.is_sign_negative() && !value.is_nan()),
            &self.grouped(&digits),
            '>',
        ))
    }

    fn sign_of(&self, negative: bool) -> &'static str {
        match self.sign {
            _ if negative => "-",
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        }
    }

    /// Inserts a separator before every third digit of the whole part.
    fn grouped(&self, digits: &str) -> String {
        let Some(separator) = self.grouping else {
            return digits.to_owned();
        };
        let (whole, rest) = digits.split_at(
            digits
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(digits.len()),
        );
        let mut out = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                out.push(separator);
            }
            out.push(digit);
        }
        out + rest
    }

    fn padded(&self, sign: &str, text: &str, align: char) -> String {
        let missing = self.width.saturating_sub(sign.len() + text.chars().count());
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        match self.align.unwrap_or(align) {
            '=' => format!("{sign}{}{text}", fill(missing)),
            '<' => format!("{sign}{text}{}", fill(missing)),
            '^' => format!(
                "{}{sign}{text}{}",
                fill(missing / 2),
                fill(missing - missing / 2)
            ),
            _ => format!("{}{sign}{text}", fill(missing)),
        }
    }
}

/// Formats as `%e`: the exponent has a sign and at least two digits.
fn scientific(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Formats as `%g`: significant digits, without zeros at the end.
fn general(size: f64, precision: usize, keep_zeros: bool) -> String {
    let precision = precision.max(1);
    let rounded = format!("{size:.*e}", precision - 1);
    let exponent: i32 = rounded
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0);
    let decimals = i32::try_from(precision).unwrap_or(i32::MAX) - 1 - exponent;
    let without_zeros = |text: &str| {
        if keep_zeros || !text.contains('.') {
            text.to_owned()
        } else {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    match usize::try_from(decimals) {
        Ok(decimals) if exponent >= -4 => without_zeros(&format!("{size:.decimals$}")),
        _ => {
            let text = scientific(size, precision - 1);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
            format!("{}e{exponent}", without_zeros(digits))
        }
    }
}

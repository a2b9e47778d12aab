//! Python's format specifications, and numbers in their formats.

use minijinja::value::{Value, ValueKind};

use super::representation::{float_text, printed};
use super::values::{Result, wrong};

/// Maximum width and precision.
const WIDTH: usize = 1 << 10;

/// A format specification: `[[fill]align][sign][#][0][width][grouping][.precision][type]`.
#[derive(Default)]
pub(super) struct Spec {
    pub fill: Option<char>,
    pub align: Option<char>,
    pub sign: Option<char>,
    pub alternate: bool,
    pub width: usize,
    pub grouping: Option<char>,
    pub precision: Option<usize>,
    pub kind: Option<char>,
}

/// The whole part of a number, if it is finite.
pub(super) fn whole(float: f64) -> Option<i128> {
    format!("{:.0}", float.trunc()).parse().ok()
}

/// Takes the characters at the beginning of a text that satisfy `of`, and advances the text past them.
pub(crate) fn taken<'a>(text: &mut &'a str, of: impl Fn(char) -> bool) -> &'a str {
    let (first, rest) = text.split_at(text.find(|c| !of(c)).unwrap_or(text.len()));
    *text = rest;
    first
}

pub(super) fn number(digits: &str) -> Result<Option<usize>> {
    if digits.is_empty() {
        return Ok(None);
    }
    let width = digits.parse().ok().filter(|width| *width <= WIDTH);
    width
        .map(Some)
        .ok_or_else(|| wrong(format!("format: a width above {WIDTH}")))
}

impl Spec {
    pub fn parsed(text: &str) -> Result<Self> {
        let (mut spec, mut rest) = (Self::default(), text);
        let is_align = |c: &char| "<>=^".contains(*c);
        let second = text.chars().nth(1).filter(is_align);
        if second.is_some() {
            spec.fill = text.chars().next();
            rest = &rest[spec.fill.map_or(0, char::len_utf8)..];
        }
        let one = |rest: &mut &str, of: &str| {
            let found = rest.chars().next().filter(|c| of.contains(*c));
            *rest = &rest[found.map_or(0, char::len_utf8)..];
            found
        };
        spec.align = one(&mut rest, "<>=^");
        spec.sign = one(&mut rest, "+- ");
        spec.alternate = one(&mut rest, "#").is_some();
        if one(&mut rest, "0").is_some() {
            spec.fill = spec.fill.or(Some('0'));
            spec.align = spec.align.or(Some('='));
        }
        spec.width = number(taken(&mut rest, |c| c.is_ascii_digit()))?.unwrap_or(0);
        spec.grouping = one(&mut rest, ",_");
        if one(&mut rest, ".").is_some() {
            let precision = number(taken(&mut rest, |c| c.is_ascii_digit()))?;
            spec.precision = Some(precision.ok_or_else(|| wrong("format: no precision"))?);
        }
        spec.kind = rest.chars().next();
        match rest.chars().nth(1) {
            None => Ok(spec),
            Some(_) => Err(wrong(format!(
                "format: the specification {text:?} is not known"
            ))),
        }
    }

    pub fn of(&self, value: &Value) -> Result<String> {
        let float = matches!(self.kind, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%'));
        let kind = value.kind();
        let number = kind == ValueKind::Number || kind == ValueKind::Bool && self.kind.is_some();
        let fraction = kind == ValueKind::Number && !value.is_integer();
        match kind {
            _ if number && (float || fraction) => self.of_float(f64::try_from(value.clone())?),
            _ if number => self.of_integer(i128::try_from(value.clone())?),
            ValueKind::String => self.of_text(value.as_str().unwrap_or_default()),
            _ if self.width == 0 && self.kind.is_none() => Ok(printed(value)),
            other => {
                let reason =
                    format!("format: a value of the kind {other} has no such specification");
                Err(wrong(reason))
            }
        }
    }

    pub fn of_text(&self, text: &str) -> Result<String> {
        if !matches!(self.kind, None | Some('s' | 'c'))
            || self.sign.is_some()
            || self.align == Some('=')
        {
            return Err(wrong("format: a specification of numbers for a text"));
        }
        let text = text.chars().take(self.precision.unwrap_or(usize::MAX));
        Ok(self.padded("", &text.collect::<String>(), '<'))
    }

    pub fn of_integer(&self, value: i128) -> Result<String> {
        let size = value.unsigned_abs();
        let (prefix, digits) = match self.kind {
            None | Some('d' | 'n') => ("", size.to_string()),
            Some('b') => ("0b", format!("{size:b}")),
            Some('o') => ("0o", format!("{size:o}")),
            Some('x') => ("0x", format!("{size:x}")),
            Some('X') => ("0X", format!("{size:X}")),
            Some('c') => {
                let c = u32::try_from(value).ok().and_then(char::from_u32);
                let c = c.ok_or_else(|| wrong("format: no character has this number"))?;
                return Ok(self.padded("", &c.to_string(), '<'));
            }
            Some(other) => return Err(wrong(format!("format: integers have no {other}"))),
        };
        let sign = self.sign_of(value < 0).to_owned() + if self.alternate { prefix } else { "" };
        let digits = format!("{digits:0>width$}", width = self.precision.unwrap_or(0));
        Ok(self.padded(&sign, &self.grouped(&digits), '>'))
    }

    pub fn of_float(&self, value: f64) -> Result<String> {
        let size = value.abs();
        let precision = self.precision.unwrap_or(6);
        let upper = matches!(self.kind, Some('E' | 'F' | 'G'));
        let digits = match self.kind.map(|kind| kind.to_ascii_lowercase()) {
            _ if !size.is_finite() => float_text(size),
            None if self.precision.is_none() => float_text(size),
            None => {
                let text = general(size, precision, self.alternate);
                let has_fraction = text.contains(['.', 'e']);
                text + if has_fraction { "" } else { ".0" }
            }
            Some('f') => format!("{size:.precision$}"),
            Some('%') => format!("{:.precision$}%", size * 100.0),
            Some('e') => scientific(size, precision),
            Some('g') => general(size, precision, self.alternate),
            Some(other) => return Err(wrong(format!("format: floats have no {other}"))),
        };
        let digits = if upper { digits.to_uppercase() } else { digits };
        let sign = self.sign_of(value.is_sign_negative() && !value.is_nan());
        Ok(self.padded(sign, &self.grouped(&digits), '>'))
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
        let mut rest = digits;
        let whole = taken(&mut rest, |c| c.is_ascii_digit());
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
            '^' => {
                let left = missing / 2;
                format!("{}{sign}{text}{}", fill(left), fill(missing - left))
            }
            _ => format!("{}{sign}{text}", fill(missing)),
        }
    }
}

/// Formats as `%e`: the exponent has a sign and at least two digits.
fn scientific(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{exponent:+03}")
}

/// Formats as `%g`: significant digits, without zeros at the end.
fn general(size: f64, precision: usize, keep_zeros: bool) -> String {
    let precision = precision.max(1);
    let rounded = format!("{size:.*e}", precision - 1);
    let exponent = rounded
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok());
    let exponent: i32 = exponent.unwrap_or(0);
    let decimals = i32::try_from(precision).unwrap_or(i32::MAX) - 1 - exponent;
    let without_zeros = |text: String| match keep_zeros || !text.contains('.') {
        true => text,
        false => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    };
    match usize::try_from(decimals) {
        Ok(decimals) if exponent >= -4 => without_zeros(format!("{size:.decimals$}")),
        _ => {
            let text = scientific(size, precision - 1);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
            without_zeros(digits.to_owned()) + "e" + exponent
        }
    }
}

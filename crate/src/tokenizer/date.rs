//! A date, and Python's `strftime` for midnight.

use std::fmt;
use std::str::FromStr;

use super::jinja::taken;
use crate::error::{Error, Fault, Result, shown};

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Number of days in a year before each month, and in a whole year.
const BEFORE: [u32; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
/// Number of days from the first of January of the year 1 to 1970.
const EPOCH: u32 = 719_162;
/// Maximum width of a directive.
const WIDTH: usize = 1024;

/// A date of the Gregorian calendar, in the years 1 to 9999. Its text is `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u32,
    month: u32,
    day: u32,
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Returns the number of days in the first `month` months of `year`, for 0 to 12 months.
fn days_before(year: u32, month: u32) -> u32 {
    BEFORE[month as usize] + u32::from(month > 1 && is_leap(year))
}

/// Returns the number of days from the year 1 to the first of January of `year`.
fn days_before_year(year: u32) -> u32 {
    let past = year.saturating_sub(1);
    past * 365 + past / 4 - past / 100 + past / 400
}

impl Date {
    /// Creates a date, if it exists; months and days count from 1.
    pub fn new(year: u32, month: u32, day: u32) -> Option<Self> {
        let lasts = || days_before(year, month) - days_before(year, month - 1);
        ((1..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1 && day <= lasts())
            .then_some(Self { year, month, day })
    }

    /// Returns the date in UTC at this number of seconds after 1970 began; `None` after the year 9999.
    pub fn of_unix_secs(secs: u64) -> Option<Self> {
        let days = u32::try_from(secs / 86_400).ok()?.checked_add(EPOCH)?;
        let mut years = (days / 366 + 1..=days / 365 + 1).rev();
        let year = years.find(|&year| days_before_year(year) <= days)?;
        let of_year = days - days_before_year(year);
        let mut months = (1..=12).rev();
        let month = months.find(|&month| days_before(year, month - 1) <= of_year)?;
        Self::new(year, month, of_year - days_before(year, month - 1) + 1)
    }

    /// Returns the day of the year, from 0.
    fn of_year(self) -> u32 {
        days_before(self.year, self.month - 1) + self.day - 1
    }

    /// Returns the number of days since the first of January of the year 1, which was a Monday.
    fn since_first(self) -> u32 {
        days_before_year(self.year) + self.of_year()
    }

    /// Returns the day of the week, with Sunday as 0.
    fn of_week(self) -> u32 {
        (self.since_first() + 1) % 7
    }

    /// Returns year and week by ISO 8601: a week belongs to the year that contains its Thursday.
    fn iso_week(self) -> (u32, u32) {
        let thursday = self.since_first() - (self.of_week() + 6) % 7 + 3;
        let mut years = (self.year.saturating_sub(1)..=self.year + 1).rev();
        let year = years.find(|&year| days_before_year(year) <= thursday);
        let year = year.unwrap_or(self.year);
        (year, (thursday - days_before_year(year)) / 7 + 1)
    }

    /// Formats midnight like Python's `datetime.strftime`, without a time zone, in the C locale of Linux: a directive may have flags (`-`,
    /// `_`, `0`, `^`, `#`) and a width, and an unknown one is kept. Returns `None` for a width above 1024.
    pub(super) fn strftime(self, format: &str) -> Option<String> {
        let (mut out, mut rest) = (String::with_capacity(format.len()), format);
        while let Some((text, directive)) = rest.split_once('%') {
            out.push_str(text);
            let mut after = directive;
            let flags = taken(&mut after, |c| "-_0^#".contains(c));
            let width = taken(&mut after, |c| c.is_ascii_digit());
            let plain = flags.is_empty() && width.is_empty();
            // Modifiers for other locales.
            let after = after.strip_prefix(['E', 'O']).unwrap_or(after);
            let mut following = after.chars();
            let field = following
                .next()
                .and_then(|letter| self.field(letter, plain));
            let Some(field) = field else {
                out.push('%');
                rest = directive;
                continue;
            };
            let width = match width {
                "" => 0,
                width => width.parse().ok().filter(|width| *width <= WIDTH)?,
            };
            field.write(flags, width, &mut out);
            rest = following.as_str();
        }
        out.push_str(rest);
        Some(out)
    }

    /// Returns the value of a directive; `plain` means without flags and width.
    fn field(self, letter: char, plain: bool) -> Option<Field> {
        let (iso_year, iso_week) = self.iso_week();
        let (day, month) = (
            DAYS[self.of_week() as usize],
            MONTHS[self.month as usize - 1],
        );
        let several = |format: &str| self.strftime(format).map(Field::text);
        let two = |value: u32| Field::number(value, 2, '0');
        let of_hour = |text: &str, case: Case| Field {
            case,
            ..Field::text(text.to_owned())
        };
        Some(match letter {
            'a' => Field::name(day.get(..3)?),
            'A' => Field::name(day),
            'b' | 'h' => Field::name(month.get(..3)?),
            'B' => Field::name(month),
            'c' => several("%a %b %e %H:%M:%S %Y")?,
            'C' => two(self.year / 100),
            'd' => two(self.day),
            'D' | 'x' => several("%m/%d/%y")?,
            'e' => Field::number(self.day, 2, ' '),
            'f' if plain => Field::text("000000".to_owned()),
            'F' => several("%Y-%m-%d")?,
            'g' => two(iso_year % 100),
            'G' => Field::number(iso_year, 4, '0'),
            'H' | 'M' | 'S' => two(0),
            'I' => two(12),
            'j' => Field::number(self.of_year() + 1, 3, '0'),
            'k' => Field::number(0, 2, ' '),
            'l' => Field::number(12, 2, ' '),
            'm' => two(self.month),
            'n' => Field::text("\n".to_owned()),
            'p' => of_hour("AM", Case::Half),
            'P' => of_hour("am", Case::Kept),
            'r' => several("%I:%M:%S %p")?,
            'R' => several("%H:%M")?,
            's' => {
                let days = i64::from(self.since_first()) - i64::from(EPOCH);
                Field::text((days * 86_400).to_string())
            }
            't' => Field::text("\t".to_owned()),
            'T' | 'X' => several("%H:%M:%S")?,
            'u' => Field::number((self.of_week() + 6) % 7 + 1, 1, '0'),
            'U' => two((self.of_year() + 7 - self.of_week()) / 7),
            'V' => two(iso_week),
            'w' => Field::number(self.of_week(), 1, '0'),
            'W' => Field::number((self.of_year() + 7 - (self.of_week() + 6) % 7) / 7, 2, '0'),
            'y' => two(self.year % 100),
            'Y' => Field::number(self.year, 4, '0'),
            'z' | 'Z' if plain => Field::text(String::new()),
            '%' => Field::text("%".to_owned()),
            _ => return None,
        })
    }
}

/// The text that replaces a directive.
struct Field {
    text: String,
    digits: usize,
    pad: char,
    case: Case,
}

/// Change of letter case by the flags `^` and `#`.
enum Case {
    /// A name: upper case with either flag.
    Name,
    /// AM or PM: lower case with `#`.
    Half,
    /// Upper case with `^` only.
    Plain,
    /// Unchanged by either flag.
    Kept,
}

impl Field {
    fn text(text: String) -> Self {
        Self {
            text,
            digits: 0,
            pad: ' ',
            case: Case::Plain,
        }
    }

    fn name(text: &str) -> Self {
        Self {
            case: Case::Name,
            ..Self::text(text.to_owned())
        }
    }

    fn number(value: u32, digits: usize, pad: char) -> Self {
        Self {
            digits,
            pad,
            ..Self::text(value.to_string())
        }
    }

    fn write(self, flags: &str, width: usize, out: &mut String) {
        let pad = flags.chars().rev().find(|flag| "-_0".contains(*flag));
        let digits = match pad {
            Some('-') => width,
            _ => self.digits.max(width),
        };
        let fill = match pad {
            Some('_' | '-') => ' ',
            Some('0') => '0',
            _ => self.pad,
        };
        let missing = digits.saturating_sub(self.text.len());
        out.extend(std::iter::repeat_n(fill, missing));
        match self.case {
            Case::Half if flags.contains('#') => out.push_str(&self.text.to_lowercase()),
            Case::Name if flags.contains('#') => out.push_str(&self.text.to_uppercase()),
            Case::Half | Case::Name | Case::Plain if flags.contains('^') => {
                out.push_str(&self.text.to_uppercase())
            }
            _ => out.push_str(&self.text),
        }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Date {
    type Err = Error;

    /// Reads `YYYY-MM-DD`.
    ///
    /// # Errors
    /// `config.invalid` if the text has another form or names no day of the calendar.
    fn from_str(text: &str) -> Result<Self> {
        let digits = |part: &str, count: usize| {
            let is_number = part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse().ok().filter(|_| is_number)
        };
        let date = || {
            let (year, rest) = text.split_once('-')?;
            let (month, day) = rest.split_once('-')?;
            Self::new(digits(year, 4)?, digits(month, 2)?, digits(day, 2)?)
        };
        let rule = "a day of the calendar, written YYYY-MM-DD, such as 2026-07-31";
        let fault = || Fault::new("chat_date", rule, shown(text));
        date().ok_or_else(|| Error::InvalidConfig(vec![fault()]))
    }
}

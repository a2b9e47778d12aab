//! Dates in chat templates, compared with Python's (`golden/dates.json`).

use serde_json::{Value, json};
use tabtune::tokenizer::{Conversation, Date};

use super::{golden, with_template};

/// Returns the output of a template for a day, or the code of its refusal.
fn on(date: Option<Date>, template: &str) -> Result<String, &'static str> {
    let names = json!({"formats": golden("dates")["formats"]})
        .as_object()
        .unwrap()
        .clone();
    let conversation = Conversation {
        names,
        date,
        ..Conversation::default()
    };
    with_template(template, &json!({}))
        .render_chat(&conversation, false)
        .map(|rendered| rendered.text)
        .map_err(|e| e.code())
}

#[test]
fn days_are_written_as_python_writes_them() {
    let file = golden("dates");
    for (day, texts) in file["dates"].as_object().unwrap() {
        let date: Date = day.parse().unwrap();
        assert_eq!(date.to_string(), *day);
        let written = on(
            Some(date),
            "{% for format in formats %}{{ strftime_now(format) }}{{ '\\0' }}{% endfor %}",
        )
        .unwrap();
        for ((format, expected), found) in file["formats"]
            .as_array()
            .unwrap()
            .iter()
            .zip(texts.as_array().unwrap())
            .zip(written.split('\0'))
        {
            assert_eq!(Value::from(found), *expected, "{day} {format}");
        }
    }
}

#[test]
fn a_template_has_a_day_only_if_one_is_given() {
    let asks = "{{ strftime_now('%Y') if strftime_now is defined else 'no day' }}";
    assert_eq!(on(None, asks).unwrap(), "no day");
    assert_eq!(
        on(None, "{{ strftime_now('%Y') }}").unwrap_err(),
        "tokenizer.template"
    );
    let day = Date::new(2024, 7, 26);
    assert_eq!(on(day, asks).unwrap(), "2024");
    for wrong in [
        "{{ strftime_now('%1025d') }}",
        "{{ strftime_now('%99999999999999999999d') }}",
        "{{ strftime_now() }}",
        "{{ strftime_now(1) }}",
    ] {
        assert_eq!(on(day, wrong).unwrap_err(), "tokenizer.template", "{wrong}");
    }
}

#[test]
fn days_that_no_calendar_has_are_refused() {
    for wrong in [
        "",
        "2024-7-26",
        "2024-02-30",
        "2023-02-29",
        "1900-02-29",
        "2024-13-01",
        "2024-00-01",
        "2024-01-00",
        "0000-01-01",
        "2024/01/01",
        "+024-01-01",
        "2024-01-1é",
    ] {
        let refused = wrong.parse::<Date>().unwrap_err();
        assert_eq!(refused.code(), "config.invalid", "{wrong}");
        assert!(refused.to_string().contains("YYYY-MM-DD"), "{refused}");
    }
}

#[test]
fn seconds_since_1970_fall_on_the_right_day() {
    let day = |secs| Date::of_unix_secs(secs).map(|date| date.to_string());
    for (secs, expected) in [
        (0, "1970-01-01"),
        (86_399, "1970-01-01"),
        (86_400, "1970-01-02"),
        (951_782_400, "2000-02-29"),
        (1_735_603_200, "2024-12-31"),
        (1_735_689_600, "2025-01-01"),
        (253_402_300_799, "9999-12-31"),
    ] {
        assert_eq!(day(secs).as_deref(), Some(expected));
    }
    assert_eq!(day(253_402_300_800), None);
    assert_eq!(day(u64::MAX), None);
    let first: i64 = 253_402_300_799 / 86_400;
    let mut before = None;
    for days in 0..=first.unsigned_abs() {
        let next = Date::of_unix_secs(days * 86_400).unwrap();
        assert!(before.is_none_or(|before| before < next), "{next}");
        before = Some(next);
    }
}

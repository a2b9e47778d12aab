//! Settings in TypeScript: their interfaces, and the kinds of their values, which the page checks.

use std::fmt::Write as _;

use tabtune_border::camel;

use super::HEADER;
use super::keys::Settings;
use super::text::{documentation, quoted, shown};

const HEAD: &str = "/** Settings by their names in TypeScript. */\n";

fn interface(settings: &Settings) -> String {
    let mut fields = String::new();
    if let Some(tag) = &settings.tag {
        let _ = writeln!(
            fields,
            "  /** Selects these settings. */\n  type: {};",
            quoted(tag)
        );
    }
    for (key, kind) in settings.plain() {
        let doc = documentation(&key.doc);
        let comment = if key.value.is_null() {
            format!("/** {doc} */")
        } else {
            format!(
                "/**\n   * {doc}\n   * @default {}\n   */",
                shown(&key.value)
            )
        };
        let (name, kind) = (camel(&key.key), kind.typed());
        let field = if key.required {
            format!("{name}: {kind}")
        } else {
            format!("{name}?: {kind} | undefined")
        };
        let _ = writeln!(fields, "  {comment}\n  {field};");
    }
    let (doc, name) = (documentation(&settings.doc), &settings.name);
    format!("/** {doc} */\nexport interface {name} {{\n{fields}}}\n")
}

/// Returns the settings without a `type`.
pub fn interfaces(all: &[Settings]) -> String {
    let plain = all.iter().filter(|settings| settings.tag.is_none());
    format!(
        "{HEADER}{HEAD}{}",
        Vec::from_iter(plain.map(interface)).join("\n")
    )
}

/// Returns the update rules and schedules, which are chosen by a `type`.
pub fn rules(all: &[Settings]) -> String {
    let tagged = || all.iter().filter(|settings| settings.tag.is_some());
    let union = |of: &str| {
        let names = tagged().filter(|settings| settings.of == of);
        Vec::from_iter(names.map(|settings| settings.name.as_str())).join(" | ")
    };
    format!(
        "{HEADER}{HEAD}{}
/** An update rule with its settings. */
export type OptimizerOptions = {};

/** A schedule of the learning rate with its settings. */
export type ScheduleOptions = {};
",
        Vec::from_iter(tagged().map(interface)).join("\n"),
        union("optimizer"),
        union("schedule")
    )
}

/// Returns the kinds of the values of all settings.
pub fn kinds(all: &[Settings]) -> String {
    let table = |settings: &Settings| {
        let kinds = settings
            .plain()
            .map(|(key, kind)| format!("{}: {}", camel(&key.key), kind.constant()));
        format!("{{ {} }}", Vec::from_iter(kinds).join(", "))
    };
    let constant = |of: &str| {
        let split = |letter: char| {
            let between = letter.is_ascii_uppercase().then_some('_');
            between.into_iter().chain([letter.to_ascii_uppercase()])
        };
        of.chars().flat_map(split).collect::<String>()
    };
    let mut made = String::new();
    for settings in all.iter().filter(|settings| settings.tag.is_none()) {
        let _ = writeln!(
            made,
            "export const {}: Kinds = {};",
            constant(settings.of),
            table(settings)
        );
    }
    for of in ["optimizer", "schedule"] {
        let _ = writeln!(
            made,
            "export const {}S: Record<string, Kinds> = {{",
            constant(of)
        );
        for settings in all.iter().filter(|settings| settings.of == of) {
            let tag = settings.tag.as_deref().unwrap_or_default();
            let _ = writeln!(made, "  {tag}: {},", table(settings));
        }
        made.push_str("};\n");
    }
    format!(
        "{HEADER}/**
 * Keys of settings and the kinds of their values: a `count` is an integer of at least 0, `counts` and `names` are one value or a list, a `list` has texts, a `table`
 * numbers by names; a list is its words.
 */
export type Kind = 'count' | 'counts' | 'integer' | 'number' | 'number or auto' | 'number or null' | 'boolean' | 'string' | 'names' | 'list' | 'numbers' | 'table' | readonly (string | boolean)[];
export type Kinds = Readonly<Record<string, Kind>>;

{made}"
    )
}

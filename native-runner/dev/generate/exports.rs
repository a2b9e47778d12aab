//! The formats of exports in TypeScript.

use std::collections::BTreeSet;

use serde_json::json;
use tabtune::export::ExportFormat;
use tabtune_border::camel;

use super::HEADER;
use super::text::{quoted, word};

/// Returns the module with the formats of exports.
pub fn formats() -> String {
    let words = ExportFormat::ALL.map(|format| word(&json!(format)));
    let own = |format: &ExportFormat| {
        let options = format.own_options().iter();
        Vec::from_iter(options.map(|key| quoted(&camel(key))))
    };
    let options: BTreeSet<String> = ExportFormat::ALL.iter().flat_map(own).collect();
    let row = |(format, word): (&ExportFormat, &String)| {
        let bare = word.trim_matches('\'');
        format!(
            "  {}: {{ about: {}, ending: {}, adapter: {}, options: [{}] }},\n",
            if bare.contains('-') { word } else { bare },
            quoted(format.about()),
            quoted(format.ending()),
            format.is_of_adapter(),
            own(format).join(", ")
        )
    };
    let rows: String = ExportFormat::ALL.iter().zip(&words).map(row).collect();
    format!(
        "{HEADER}/** Words of the formats of exports. */
export const EXPORT_WORDS = [{}] as const;
/** Name of a form in which a model can leave. */
export type ExportFormat = {};

/** Options of exports that only some formats have. */
export type OwnExportOption = {};

/**
 * Formats of exports: a description, the ending of the one file (empty for a folder), whether it is the format of a trained adapter alone, and the
 * options that it has and not all formats have.
 */
export const EXPORT_FORMATS: Readonly<Record<ExportFormat, {{ about: string; ending: string; adapter: boolean; options: readonly OwnExportOption[] }}>> = {{
{rows}}};
",
        words.join(", "),
        words.join(" | "),
        Vec::from_iter(options).join(" | ")
    )
}

//! Types and parsers of reports in TypeScript.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde_json::Value;
use tabtune::bundle::{Check, FileInfo, InspectReport, Verification};
use tabtune::data::{DataReport, DataWarning, FileSummary, Preview, RowPlace};
use tabtune::device::DeviceInfo;
use tabtune::error::Refusal;
use tabtune::export::ExportChoice;
use tabtune::formats::FileTensor;
use tabtune::generate::GeneratedToken;
use tabtune::generate::score::Score;
use tabtune::gpu::profile::ProfileReport;
use tabtune::measure::GpuReport;
use tabtune::portable::{DeltaReport, ExtractReport, Inspection, PlanReport, TokenizerFacts};
use tabtune::train::{EvalReport, Notice, StepReport};
use tabtune_border::{
    AdapterInfo, Advanced, BaseInfo, DataInspection, Details, Estimate, ModelInfo, SessionInfo,
    Thrown, Tokenized, camel, is_document,
};

use super::HEADER;
use super::records;
use super::schema::{is_required, properties, reference, reported, without_null, words};
use super::text::{documentation, word};

/// A report with its names.
struct Report {
    /// Name of the parser.
    name: &'static str,
    /// Name of the type in TypeScript, if others than the parser need it.
    kind: &'static str,
    schema: Value,
}

fn of<T: JsonSchema>(name: &'static str, kind: &'static str) -> Report {
    Report {
        name,
        kind,
        schema: reported::<T>(),
    }
}

/// Returns all reports. One that is a part of others is before them.
fn reports() -> Vec<Report> {
    vec![
        of::<Refusal>("refusal", ""),
        of::<Thrown>("errorDetail", "ErrorDetail"),
        of::<StepReport>("step", ""),
        of::<EvalReport>("evaluation", "EvalReport"),
        of::<Notice>("warning", "Finding"),
        of::<GeneratedToken>("token", "SampledToken"),
        of::<Score>("score", "Score"),
        of::<ProfileReport>("profile", "Profile"),
        of::<GpuReport>("gpu", "GpuReport"),
        of::<DeviceInfo>("device", ""),
        of::<FileTensor>("fileTensor", ""),
        of::<TokenizerFacts>("tokenizer", ""),
        of::<AdapterInfo>("adapterInfo", "AdapterInfo"),
        of::<BaseInfo>("baseInfo", "BaseInfo"),
        of::<ModelInfo>("modelInfo", "ModelInfo"),
        of::<Estimate>("estimate", ""),
        of::<RowPlace>("rowPlace", ""),
        of::<DataWarning>("dataWarning", ""),
        of::<DataReport>("dataReport", "DataReport"),
        of::<Preview>("preview", ""),
        of::<Vec<Preview>>("dataPreview", "DataPreview"),
        of::<FileSummary>("fileSummary", "FileSummary"),
        of::<Vec<FileSummary>>("fileSummaries", ""),
        of::<DataInspection>("dataInspection", "DataInspection"),
        of::<SessionInfo>("session", ""),
        of::<Advanced>("advanced", ""),
        of::<Tokenized>("tokenized", ""),
        of::<FileInfo>("fileInfo", ""),
        of::<ExportChoice>("exportChoice", "ExportChoice"),
        of::<Details>("modelDetails", "ModelDetails"),
        of::<InspectReport>("fileReport", "FileReport"),
        of::<Inspection>("inspection", ""),
        of::<PlanReport>("planReport", "PlanReport"),
        of::<DeltaReport>("deltaReport", "DeltaReport"),
        of::<Check>("check", "VerificationCheck"),
        of::<Verification>("verification", "Verification"),
        of::<ExtractReport>("extractReport", ""),
    ]
}

/// Fields of a thrown error that are not details of it.
const OF_ERRORS: [&str; 2] = ["kind", "message"];

/// A report that is written already: the name of its type in Rust, its parser, and its type in TypeScript.
struct Written {
    rust: String,
    parser: String,
    kind: String,
}

/// Writes the parsers and types of one report.
struct Writer<'a> {
    written: &'a [Written],
    definitions: Value,
}

impl Writer<'_> {
    /// Returns the report that a schema refers to, or the schema itself with the name of its type in Rust.
    fn resolved<'s>(&'s self, schema: &'s Value) -> Result<&'s Written, (&'s Value, &'s str)> {
        let Some(name) = reference(schema) else {
            return Err((schema, ""));
        };
        let written = self.written.iter().find(|written| written.rust == name);
        written.ok_or((&self.definitions[name], name))
    }

    fn parser(&self, schema: &Value, indent: &str) -> String {
        let (schema, rust) = match self.resolved(schema) {
            Ok(written) => return written.parser.clone(),
            Err(found) => found,
        };
        if let Some(words) = words(schema) {
            let words = words.iter().map(word);
            return format!("oneOf({})", Vec::from_iter(words).join(", "));
        }
        match schema["type"].as_str() {
            Some("array") => format!("listOf({})", self.parser(&schema["items"], indent)),
            Some("object") if schema["additionalProperties"].is_object() => {
                format!(
                    "tableOf({})",
                    self.parser(&schema["additionalProperties"], indent)
                )
            }
            Some("object") if schema.get("properties").is_none() => {
                "documentOf<JsonObject>()".into()
            }
            Some("object") => {
                let inner = format!("{indent}  ");
                format!("record({})", self.fields(schema, rust, &inner))
            }
            Some("integer") if schema["minimum"] == 0 => "count".into(),
            Some("integer" | "number") => "number".into(),
            Some("boolean") => "flag".into(),
            Some("string") => "text".into(),
            _ => "json".into(),
        }
    }

    /// Returns the type of a value in TypeScript.
    fn kind(&self, schema: &Value, indent: &str) -> String {
        let (schema, rust) = match self.resolved(schema) {
            Ok(written) => return written.kind.clone(),
            Err(found) => found,
        };
        if let Some(words) = words(schema) {
            return Vec::from_iter(words.iter().map(word)).join(" | ");
        }
        match schema["type"].as_str() {
            Some("array") => {
                let item = self.kind(&schema["items"], indent);
                match item.contains(" | ") && !item.starts_with('{') {
                    true => format!("({item})[]"),
                    false => format!("{item}[]"),
                }
            }
            Some("object") if schema["additionalProperties"].is_object() => {
                let inner = self.kind(&schema["additionalProperties"], indent);
                format!("Readonly<Record<string, {inner}>>")
            }
            Some("object") if schema.get("properties").is_none() => "JsonObject".into(),
            Some("object") => self.members(schema, rust, &format!("{indent}  ")),
            Some("integer" | "number") => "number".into(),
            Some("boolean") => "boolean".into(),
            Some("string") => "string".into(),
            _ => "Json".into(),
        }
    }

    /// Returns the members of an interface, with their documentation.
    fn members(&self, object: &Value, rust: &str, indent: &str) -> String {
        let mut made = String::from("{\n");
        for Field {
            name,
            property,
            inner,
            null,
        } in fields(object, rust)
        {
            if let Some(doc) = property["description"].as_str() {
                let _ = writeln!(made, "{indent}/** {} */", documentation(doc));
            }
            let kind = self.kind(&inner, indent);
            let _ = match null {
                Null::Never => writeln!(made, "{indent}{name}: {kind};"),
                Null::Absent | Null::Missing => {
                    writeln!(made, "{indent}{name}?: {kind} | undefined;")
                }
                Null::Itself => writeln!(made, "{indent}{name}: {kind} | null;"),
            };
        }
        made + indent.strip_prefix("  ").unwrap_or_default() + "}"
    }

    /// Returns the parsers of the fields of a struct.
    fn fields(&self, object: &Value, rust: &str, indent: &str) -> String {
        let mut made = String::from("{\n");
        for Field {
            name, inner, null, ..
        } in fields(object, rust)
        {
            let parser = self.parser(&inner, indent);
            let _ = match null {
                Null::Never => writeln!(made, "{indent}{name}: {parser},"),
                Null::Absent => writeln!(made, "{indent}{name}: optional({parser}),"),
                Null::Missing => writeln!(made, "{indent}{name}: missing({parser}),"),
                Null::Itself => writeln!(made, "{indent}{name}: nullable({parser}),"),
            };
        }
        made + indent.strip_prefix("  ").unwrap_or_default() + "}"
    }
}

/// How a field lacks a value.
enum Null {
    Never,
    /// The field is absent.
    Absent,
    /// The field of a document is null, which is an absent value there.
    Missing,
    Itself,
}

struct Field<'a> {
    name: String,
    property: &'a Value,
    /// Schema of its values without null.
    inner: Value,
    null: Null,
}

/// Returns the fields of a struct.
fn fields<'a>(object: &'a Value, rust: &str) -> Vec<Field<'a>> {
    let is_document = is_document(rust);
    let own = |(key, _): &(&String, &Value)| rust != "Thrown" || !OF_ERRORS.contains(&key.as_str());
    let field = |(key, property): (&String, &'a Value)| {
        let inner = without_null(property);
        let null = match (is_required(object, key), &inner) {
            (false, _) => Null::Absent,
            (true, Some(_)) if is_document => Null::Missing,
            (true, Some(_)) => Null::Itself,
            (true, None) => Null::Never,
        };
        Field {
            name: if is_document { key.clone() } else { camel(key) },
            property,
            inner: inner.unwrap_or_else(|| property.clone()),
            null,
        }
    };
    properties(object).filter(own).map(field).collect()
}

/// Returns the module with the reports.
pub fn parsers() -> String {
    let documents = records::names();
    let imported: Vec<&str> = documents.iter().map(|(_, name)| *name).collect();
    let imported = imported.join(", ");
    let document = |(rust, name): (String, &str)| Written {
        rust,
        parser: format!("documentOf<{name}>()"),
        kind: name.to_owned(),
    };
    let mut written: Vec<Written> = documents.into_iter().map(document).collect();
    let mut made = String::new();
    for Report { name, kind, schema } in reports() {
        let rust = schema["title"].as_str().unwrap_or_default().to_owned();
        let writer = Writer {
            written: &written,
            definitions: schema["$defs"].clone(),
        };
        let is_struct = schema.get("properties").is_some();
        let named = match (kind, is_struct) {
            ("", true) => rust.clone(),
            ("", false) => writer.kind(&schema, ""),
            (kind, _) => kind.to_owned(),
        };
        if let Some(doc) = schema["description"].as_str() {
            let _ = writeln!(made, "/** {} */", documentation(doc));
        } else if let (false, Some(items)) = (kind.is_empty(), schema.get("items")) {
            let _ = writeln!(made, "/** List of `{}`. */", writer.kind(items, ""));
        }
        if is_struct {
            let members = writer.members(&schema, &rust, "  ");
            let fields = writer.fields(&schema, &rust, "  ");
            let _ = writeln!(made, "export interface {named} {members}");
            let _ = writeln!(made, "export const {name}Fields = {fields};");
            let _ = writeln!(
                made,
                "export const {name}: Parser<{named}> = record({name}Fields);"
            );
        } else {
            if !kind.is_empty() {
                let _ = writeln!(made, "export type {kind} = {};", writer.kind(&schema, ""));
            }
            let parser = writer.parser(&schema, "");
            let _ = writeln!(made, "export const {name}: Parser<{named}> = {parser};");
        }
        made.push('\n');
        written.push(Written {
            rust,
            parser: name.to_owned(),
            kind: named,
        });
    }
    let used: BTreeSet<&str> = made
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .collect();
    let parsers = [
        "count",
        "documentOf",
        "flag",
        "json",
        "listOf",
        "missing",
        "nullable",
        "number",
        "oneOf",
        "optional",
        "record",
        "tableOf",
        "text",
    ];
    let used: Vec<&str> = parsers
        .into_iter()
        .filter(|name| used.contains(name))
        .collect();
    format!(
        "{HEADER}/** Reports and errors of the core, under the names that it gives them for TypeScript. */
import {{ {} }} from '../parse.js';
import type {{ Parser }} from '../parse.js';
import type {{ Json, JsonObject }} from '../json.js';
import type {{ {imported} }} from './documents.js';

{}
",
        used.join(", "),
        made.trim_end()
    )
}

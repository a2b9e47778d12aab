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
        of::<Refusal>("refusal", ""),
        of::<InspectReport>("fileReport", "FileReport"),
        of::<Inspection>("inspection", ""),
        of::<PlanReport>("planReport", "PlanReport"),
        of::<DeltaReport>("deltaReport", "DeltaReport"),
        of::<Check>("check", ""),
        of::<Verification>("verification", "Verification"),
        of::<ExtractReport>("extractReport", ""),
    ]
}

/// Fields of a thrown error that are not details of it.
const OF_ERRORS: [&str; 2] = ["kind", "message"];

/// Writes the parsers of one report.
struct Writer<'a> {
    /// Reports that are written, by the names of their types in Rust.
    written: &'a [(String, &'static str)],
    definitions: Value,
}

impl Writer<'_> {
    fn parser(&self, schema: &Value, indent: &str) -> String {
        if let Some(name) = reference(schema) {
            let written = self.written.iter().find(|(rust, _)| rust == name);
            return match written {
                Some((_, parser)) => (*parser).into(),
                None => self.named(&self.definitions[name], name, indent),
            };
        }
        self.named(schema, "", indent)
    }

    /// Returns the parser of a schema that is no reference; `rust` is the name of its type, if it has one.
    fn named(&self, schema: &Value, rust: &str, indent: &str) -> String {
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
            Some("object") if schema.get("properties").is_none() => "document".into(),
            Some("object") => {
                let inner = format!("{indent}  ");
                format!("record({})", self.fields(schema, rust, &inner))
            }
            Some("integer") if schema["minimum"] == 0 => "count".into(),
            Some("integer" | "number") => "number".into(),
            Some("boolean") => "flag".into(),
            Some("string") => "text".into(),
            _ => "anything".into(),
        }
    }

    /// Returns the parsers of the fields of a struct. In a document, null is an absent value.
    fn fields(&self, object: &Value, rust: &str, indent: &str) -> String {
        let is_document = is_document(rust);
        let mut made = String::from("{\n");
        for (key, property) in properties(object) {
            if rust == "Thrown" && OF_ERRORS.contains(&key.as_str()) {
                continue;
            }
            if let Some(doc) = property["description"].as_str() {
                let _ = writeln!(made, "{indent}/** {} */", documentation(doc));
            }
            let inner = without_null(property);
            let parser = self.parser(inner.as_ref().unwrap_or(property), indent);
            let parser = match (is_required(object, key), inner) {
                (false, _) => format!("optional({parser})"),
                (true, Some(_)) if is_document => format!("missing({parser})"),
                (true, Some(_)) => format!("nullable({parser})"),
                (true, None) => parser,
            };
            let name = if is_document { key.clone() } else { camel(key) };
            let _ = writeln!(made, "{indent}{name}: {parser},");
        }
        made + indent.strip_prefix("  ").unwrap_or_default() + "}"
    }
}

/// Returns the module with the reports.
pub fn parsers() -> String {
    let mut written: Vec<(String, &'static str)> = Vec::new();
    let mut made = String::new();
    for Report { name, kind, schema } in reports() {
        let rust = schema["title"].as_str().unwrap_or_default();
        let writer = Writer {
            written: &written,
            definitions: schema["$defs"].clone(),
        };
        let parser = if schema.get("properties").is_some() {
            let fields = writer.fields(&schema, rust, "  ");
            let _ = writeln!(made, "export const {name}Fields = {fields};");
            format!("record({name}Fields)")
        } else {
            writer.parser(&schema, "")
        };
        if let Some(doc) = schema["description"].as_str() {
            let _ = writeln!(made, "/** {} */", documentation(doc));
        }
        let _ = writeln!(made, "export const {name} = {parser};");
        if !kind.is_empty() {
            let _ = writeln!(made, "export type {kind} = Parsed<typeof {name}>;");
        }
        made.push('\n');
        written.push((rust.to_owned(), name));
    }
    let used: BTreeSet<&str> = made
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .collect();
    let parsers = [
        "anything", "count", "document", "flag", "listOf", "missing", "nullable", "number",
        "oneOf", "optional", "record", "tableOf", "text",
    ];
    let used: Vec<&str> = parsers
        .into_iter()
        .filter(|name| used.contains(name))
        .collect();
    format!(
        "{HEADER}/** Reports and errors of the core, under the names that it gives them for TypeScript. */
import {{ {} }} from '../parse.js';
import type {{ Parsed }} from '../parse.js';

{}
",
        used.join(", "),
        made.trim_end()
    )
}

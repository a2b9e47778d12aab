//! Types of documents in TypeScript: receipts, contracts and what a model started from, under the names that they have everywhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde_json::Value;
use tabtune::portable::ModelIoCompatibilityContract;
use tabtune::state::{Base, ModelIoArtifactReceipt};

use super::HEADER;
use super::schema::{is_required, properties, reference, reported, without_null, words};
use super::text::{joined, word};

/// Documents by their names in Rust, each with its name in TypeScript and its schema.
fn documents() -> [(&'static str, Value); 3] {
    [
        named::<Base>("Base"),
        named::<ModelIoArtifactReceipt>("Receipt"),
        named::<ModelIoCompatibilityContract>("Contract"),
    ]
}

fn named<T: JsonSchema>(name: &'static str) -> (&'static str, Value) {
    (name, reported::<T>())
}

/// Parts whose names in Rust say too little where all names of the package are in one list.
const RENAMED: [(&str, &str); 7] = [
    ("DataRecord", "ReceiptData"),
    ("Evaluation", "ReceiptEvaluation"),
    ("LossRecord", "ReceiptLosses"),
    ("Operation", "ReceiptOperation"),
    ("Support", "ContractSupport"),
    ("Tool", "ReceiptTool"),
    ("TrainingRecord", "ReceiptTraining"),
];

/// Returns the name in TypeScript of a part.
fn named_in_typescript(part: &str) -> &str {
    let renamed = RENAMED.iter().find(|(name, _)| *name == part);
    renamed.map_or(part, |(_, name)| name)
}

/// Returns the name in TypeScript of each document, by its name in Rust.
pub fn names() -> Vec<(String, &'static str)> {
    let name = |(name, schema): (&'static str, Value)| (title(&schema), name);
    documents().into_iter().map(name).collect()
}

fn title(schema: &Value) -> String {
    schema["title"].as_str().unwrap_or_default().to_owned()
}

/// Returns the type of a value; that of a struct is the name that it has in Rust.
fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return named_in_typescript(name).to_owned();
    }
    if let Some(words) = words(schema) {
        return Vec::from_iter(words.iter().map(word)).join(" | ");
    }
    if let Some(kinds) = schema["anyOf"].as_array() {
        return Vec::from_iter(kinds.iter().map(kind)).join(" | ");
    }
    if let Some(items) = schema["prefixItems"].as_array() {
        return format!("[{}]", Vec::from_iter(items.iter().map(kind)).join(", "));
    }
    match schema["type"].as_str() {
        Some("array") => match kind(&schema["items"]) {
            item if item.contains(" | ") => format!("({item})[]"),
            item => format!("{item}[]"),
        },
        Some("object") if schema["additionalProperties"].is_object() => {
            let item = kind(&schema["additionalProperties"]);
            format!("Readonly<Record<string, {item}>>")
        }
        Some("object") => "JsonObject".into(),
        Some("integer" | "number") => "number".into(),
        Some("boolean") => "boolean".into(),
        Some("string") => "string".into(),
        _ => "Json".into(),
    }
}

/// Returns the comment for a documentation in Rust.
fn comment(doc: &str) -> String {
    let doc = joined(doc).replace("`ModelIoCompatibilityContract`", "`Contract`");
    format!("/** {doc} */")
}

/// Returns the type of this name.
fn declared(name: &str, schema: &Value) -> String {
    let mut made = String::new();
    if let Some(doc) = schema["description"].as_str() {
        let _ = writeln!(made, "{}", comment(doc));
    }
    if schema.get("properties").is_none() {
        let _ = writeln!(made, "export type {name} = {};", kind(schema));
        return made;
    }
    let _ = writeln!(made, "export interface {name} {{");
    for (key, property) in properties(schema) {
        if let Some(doc) = property["description"].as_str() {
            let _ = writeln!(made, "  {}", comment(doc));
        }
        let inner = without_null(property);
        let kind = kind(inner.as_ref().unwrap_or(property));
        let _ = match is_required(schema, key) {
            true => writeln!(made, "  {key}: {kind};"),
            false => writeln!(made, "  {key}?: {kind} | undefined;"),
        };
    }
    made + "}\n"
}

/// Returns the module with the types of all documents and of their parts.
pub fn types() -> String {
    let mut all = BTreeMap::new();
    for (name, schema) in documents() {
        let parts = schema["$defs"].as_object().into_iter().flatten();
        for (part, schema) in parts {
            let name = named_in_typescript(part);
            all.insert(name.to_owned(), declared(name, schema));
        }
        all.insert(name.to_owned(), declared(name, &schema));
    }
    let types: Vec<String> = all.into_values().collect();
    format!(
        "{HEADER}/** Documents of the core, under their own names. */
import type {{ Json }} from '../json.js';

{}",
        types.join("\n")
    )
}

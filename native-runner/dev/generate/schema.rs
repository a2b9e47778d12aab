//! JSON schemas of types, and their parts.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

/// Returns the JSON schema of a type that is read.
pub fn given<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::default().for_deserialize();
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// Returns the JSON schema of a type that is written.
pub fn reported<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::default().for_serialize();
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// Returns the name of the definition that a schema refers to.
pub fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// Returns the schema without null, if it allows it.
pub fn without_null(schema: &Value) -> Option<Value> {
    let mut inner = schema.clone();
    if let Some([first, second]) = schema["anyOf"].as_array().map(Vec::as_slice)
        && second["type"] == "null"
    {
        return Some(first.clone());
    }
    let types = schema["type"].as_array()?;
    inner["type"] = types.iter().find(|each| *each != "null")?.clone();
    Some(inner)
}

/// Returns the fields of an object.
pub fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
}

/// Returns true if an object always has the field `key`.
pub fn is_required(schema: &Value, key: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|keys| keys.iter().any(|each| each == key))
}

/// Returns the allowed words, which may be texts or booleans, if there are no other values.
pub fn words(schema: &Value) -> Option<Vec<Value>> {
    if let Some(words) = schema["enum"].as_array() {
        return Some(words.clone());
    }
    let variants = schema["oneOf"].as_array()?;
    let words = variants
        .iter()
        .flat_map(|each| [each.get("const"), each.get("alias")]);
    Some(words.flatten().cloned().collect())
}

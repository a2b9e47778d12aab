//! Messages and tools as programs write them, for rows of data and for requests alike.

use serde_json::{Map, Value, json};

use super::{Conversation, Rendered, Tokenizer};
use crate::error::{Error, Fault, Result, shown};

/// Names under which templates look for the reasoning before an answer. transformers passes it as the first name and, if that is free, as
/// the second.
pub(crate) const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Description of a part of a tool, or of its call.
const OBJECT: &str = "an object, or its JSON";

/// A part of a message, or of a list of tools, that is not what it has to be.
pub(crate) struct MessageFault {
    /// The part, such as `content[0]`.
    pub key: String,
    pub expected: &'static str,
    pub found: String,
    /// True for a part of the content that is no text, which may be an image.
    pub of_content: bool,
}

impl MessageFault {
    fn new(key: impl Into<String>, expected: &'static str, found: &Value) -> Self {
        Self {
            key: key.into(),
            expected,
            found: shown(&found.to_string()),
            of_content: false,
        }
    }

    /// Returns the part, if what was expected does not name it.
    pub fn place(&self) -> Option<&str> {
        (!self.expected.starts_with(self.key.as_str())).then_some(self.key.as_str())
    }
}

/// Reads a message: nulls are left out, calls of tools that are JSON texts are decoded, and reasoning has the names that templates look for.
pub(crate) fn read_message(
    message: &Map<String, Value>,
) -> Result<Map<String, Value>, MessageFault> {
    let mut fields = message.clone();
    fields.retain(|_, value| !value.is_null());
    let role = fields.get("role").unwrap_or(&Value::Null);
    if !role.is_string() {
        return Err(MessageFault::new("role", "a role, which is a text", role));
    }
    check_content(fields.get("content"))?;
    if let Some(calls) = fields.get_mut("tool_calls") {
        decode(
            calls,
            Value::is_array,
            "tool_calls",
            "tool_calls, a list of calls",
        )?;
        for (index, call) in calls.as_array_mut().into_iter().flatten().enumerate() {
            let key = format!("tool_calls[{index}]");
            decode_tool(call, &key, "a call of a tool, which is an object")?;
        }
    }
    if let Some(thought) = REASONING.iter().find_map(|name| fields.get(*name)).cloned() {
        for name in REASONING.iter().take(2) {
            fields.entry(*name).or_insert_with(|| thought.clone());
        }
    }
    Ok(fields)
}

/// Reads a list of tools: a list, or its JSON text, of objects or their JSON texts.
pub(crate) fn read_tools(tools: &Value) -> Result<Value, MessageFault> {
    let mut tools = tools.clone();
    decode(
        &mut tools,
        Value::is_array,
        "tools",
        "tools: a list, or its JSON",
    )?;
    for (index, tool) in tools.as_array_mut().into_iter().flatten().enumerate() {
        let key = format!("tools[{index}]");
        decode_tool(tool, &key, "a tool, which is an object or its JSON")?;
        match tool.get_mut("function") {
            Some(function) => decode_key(function, &format!("{key}.function"), "parameters")?,
            None => decode_key(tool, &key, "parameters")?,
        }
    }
    Ok(tools)
}

/// Decodes a tool or a call of one, which is described in `key`, and its function.
fn decode_tool(tool: &mut Value, key: &str, expected: &'static str) -> Result<(), MessageFault> {
    decode(tool, Value::is_object, key, expected)?;
    decode_key(tool, key, "function")
}

/// Decodes the JSON text at a key of the object `path`, if there is one.
fn decode_key(object: &mut Value, path: &str, key: &str) -> Result<(), MessageFault> {
    match object.get_mut(key) {
        Some(value) if value.is_string() => {
            decode(value, Value::is_object, &format!("{path}.{key}"), OBJECT)
        }
        _ => Ok(()),
    }
}

/// Decodes the value at `key` if it is a JSON text. Refuses it if it is not what it has to be.
fn decode(
    value: &mut Value,
    fits: fn(&Value) -> bool,
    key: &str,
    expected: &'static str,
) -> Result<(), MessageFault> {
    let decoded = value
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    match decoded.filter(fits) {
        Some(decoded) => *value = decoded,
        None if fits(value) => {}
        None => return Err(MessageFault::new(key, expected, value)),
    }
    Ok(())
}

/// Refuses a content that is not a text, absent, or a list of texts.
fn check_content(content: Option<&Value>) -> Result<(), MessageFault> {
    let is_text_type = |part: &Value| part.get("type").is_none_or(|kind| kind == "text");
    let is_text = |part: &&Value| is_text_type(part) && part["text"].is_string();
    let (key, expected, found) = match content {
        None | Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(parts)) => {
            let Some((index, part)) = parts.iter().enumerate().find(|(_, part)| !is_text(part))
            else {
                return Ok(());
            };
            let found = if is_text_type(part) {
                part
            } else {
                &part["type"]
            };
            let key = format!("content[{index}]");
            (key, "parts of the type text, each with its text", found)
        }
        Some(other) => (
            "content".to_owned(),
            "content: a text or a list of parts",
            other,
        ),
    };
    Err(MessageFault {
        of_content: true,
        ..MessageFault::new(key, expected, found)
    })
}

/// Returns true for a variable that every template has, so that none of its own has its name.
pub(crate) fn is_reserved(name: &str) -> bool {
    matches!(name, "messages" | "add_generation_prompt")
}

/// The refusal of a value in a request.
pub(super) fn fault(key: String, rule: &str, found: &Value) -> Error {
    Error::InvalidConfig(vec![Fault::new(key, rule, shown(&found.to_string()))])
}

fn of_request(path: &str, part: MessageFault) -> Error {
    let key = format!("{path}{}", part.key);
    Error::InvalidConfig(vec![Fault::new(key, part.expected, part.found)])
}

impl Conversation {
    /// Reads a list of messages, or an object with `messages` and with `tools`, `documents` and `chat_template_kwargs` as in rows of
    /// training data.
    ///
    /// # Errors
    /// `config.invalid` with the path of a value that is not a message, a text or a variable of a template.
    pub fn from_json(value: &Value) -> Result<Self> {
        let Value::Object(given) = value else {
            return Ok(Self::new(messages(value)?));
        };
        let mut conversation = Self::new(messages(given.get("messages").unwrap_or(&Value::Null))?);
        let others = given
            .iter()
            .filter(|(key, value)| *key != "messages" && !value.is_null());
        for (key, value) in others {
            match (key.as_str(), value) {
                ("tools", _) => conversation.set_tools(value)?,
                ("documents", Value::Array(_)) => {
                    drop(conversation.names.insert(key.clone(), value.clone()))
                }
                ("documents", _) => return Err(fault(key.clone(), "a list", value)),
                ("chat_template_kwargs", Value::Object(names)) => {
                    if let Some(own) = names.keys().find(|name| is_reserved(name)) {
                        let key = format!("{key}.{own}");
                        return Err(fault(key, "names of the template's own", &json!(own)));
                    }
                    conversation.names.extend(names.clone());
                }
                ("chat_template_kwargs", _) => return Err(fault(key.clone(), "an object", value)),
                _ => {
                    let expected = "messages, tools, documents or chat_template_kwargs";
                    return Err(fault(shown(key), expected, &json!(key)));
                }
            }
        }
        Ok(conversation)
    }

    /// Hands tools to the template.
    ///
    /// # Errors
    /// `config.invalid` for a value that is no list of tools.
    #[doc(hidden)]
    pub fn set_tools(&mut self, tools: &Value) -> Result<()> {
        let tools = read_tools(tools).map_err(|fault| of_request("", fault))?;
        self.names.insert("tools".to_owned(), tools);
        Ok(())
    }
}

fn messages(value: &Value) -> Result<Vec<Value>> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let list =
        list.ok_or_else(|| fault("messages".into(), "a list of at least one message", value))?;
    let read = |(index, message): (usize, &Value)| {
        let key = format!("messages[{index}]");
        let Value::Object(fields) = message else {
            return Err(fault(key, "an object with role and content", message));
        };
        let read = read_message(fields);
        read.map(Value::Object)
            .map_err(|part| of_request(&format!("{key}."), part))
    };
    list.iter().enumerate().map(read).collect()
}

impl Tokenizer {
    /// Returns the conversation with contents that are lists of parts in the form that its template reads: unchanged, or joined to one text.
    #[doc(hidden)]
    pub fn as_read(&self, conversation: &Conversation) -> Conversation {
        let in_parts = |message: &Value| message["content"].is_array();
        if !conversation.messages.iter().any(in_parts) || self.reads_parts(conversation) {
            return conversation.clone();
        }
        let mut joined = conversation.clone();
        for message in &mut joined.messages {
            if let Value::Array(parts) = &message["content"] {
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                message["content"] = texts.collect::<String>().into();
            }
        }
        joined
    }

    /// Checks by rendering that the template writes the text of a part rather than the list around it, with the conversation's other values.
    fn reads_parts(&self, conversation: &Conversation) -> bool {
        const TEXT: &str = "one of several";
        let messages = vec![json!({"role": "user", "content": [{"type": "text", "text": TEXT}]})];
        let probe = Conversation {
            messages,
            ..conversation.clone()
        };
        let Ok(Rendered { text: written, .. }) = self.render_chat(&probe, false) else {
            return false;
        };
        written.contains(TEXT)
            && !written.contains(&format!("'{TEXT}'"))
            && !written.contains(&format!("\"{TEXT}\""))
    }
}

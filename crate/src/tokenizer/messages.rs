//! Messages and tools as programs write them, for rows of data and for requests alike.

use serde_json::{Map, Value, json};

use super::{Conversation, Tokenizer};
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
) -> std::result::Result<Map<String, Value>, MessageFault> {
    let mut fields: Map<String, Value> = message
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let role = fields.get("role").unwrap_or(&Value::Null);
    if !role.is_string() {
        return Err(MessageFault::new("role", "a role, which is a text", role));
    }
    check_content(fields.get("content"))?;
    if let Some(calls) = fields.get_mut("tool_calls") {
        let wrong = "tool_calls, a list of calls";
        decode(calls, Value::is_array)
            .map_err(|found| MessageFault::new("tool_calls", wrong, &found))?;
        for (index, call) in calls.as_array_mut().into_iter().flatten().enumerate() {
            let (key, wrong) = (
                format!("tool_calls[{index}]"),
                "a call of a tool, which is an object",
            );
            decode(call, Value::is_object)
                .map_err(|found| MessageFault::new(key.as_str(), wrong, &found))?;
            decode_key(call, "function")
                .map_err(|found| MessageFault::new(format!("{key}.function"), OBJECT, &found))?;
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
pub(crate) fn read_tools(tools: &Value) -> std::result::Result<Value, MessageFault> {
    let mut tools = tools.clone();
    decode(&mut tools, Value::is_array)
        .map_err(|found| MessageFault::new("tools", "tools: a list, or its JSON", &found))?;
    for (index, tool) in tools.as_array_mut().into_iter().flatten().enumerate() {
        let (key, wrong) = (
            format!("tools[{index}]"),
            "a tool, which is an object or its JSON",
        );
        decode(tool, Value::is_object)
            .map_err(|found| MessageFault::new(key.as_str(), wrong, &found))?;
        let function = format!("{key}.function");
        decode_key(tool, "function")
            .map_err(|found| MessageFault::new(function.as_str(), OBJECT, &found))?;
        let (key, described) = if tool.get("function").is_some() {
            (function, tool.get_mut("function"))
        } else {
            (key, Some(tool))
        };
        let read = described.map_or(Ok(()), |described| decode_key(described, "parameters"));
        read.map_err(|found| MessageFault::new(format!("{key}.parameters"), OBJECT, &found))?;
    }
    Ok(tools)
}

/// Decodes the JSON text at a key of an object, if there is one.
fn decode_key(object: &mut Value, key: &str) -> std::result::Result<(), Value> {
    match object.get_mut(key) {
        Some(value) if value.is_string() => decode(value, Value::is_object),
        _ => Ok(()),
    }
}

/// Decodes a value that is a JSON text. Returns the value if it is not what it has to be.
fn decode(value: &mut Value, fits: fn(&Value) -> bool) -> std::result::Result<(), Value> {
    let decoded = value
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    match decoded.filter(fits) {
        Some(decoded) => *value = decoded,
        None if fits(value) => {}
        None => return Err(value.clone()),
    }
    Ok(())
}

/// Refuses a content that is not a text, absent, or a list of texts.
fn check_content(content: Option<&Value>) -> std::result::Result<(), MessageFault> {
    let is_text = |part: &Value| {
        part.get("type").is_none_or(|kind| kind == "text")
            && part.get("text").is_some_and(Value::is_string)
    };
    let fault = |key: String, expected, found: &Value| MessageFault {
        of_content: true,
        ..MessageFault::new(key, expected, found)
    };
    match content {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => {
            match parts.iter().enumerate().find(|(_, part)| !is_text(part)) {
                None => Ok(()),
                Some((index, part)) => {
                    let found = part
                        .get("type")
                        .filter(|kind| *kind != "text")
                        .unwrap_or(part);
                    Err(fault(
                        format!("content[{index}]"),
                        "parts of the type text, each with its text",
                        found,
                    ))
                }
            }
        }
        Some(other) => Err(fault(
            "content".to_owned(),
            "content: a text or a list of parts",
            other,
        )),
    }
}

/// Returns the refusal of a value in a request.
pub(super) fn fault(key: String, rule: &str, found: &Value) -> Error {
    Error::InvalidConfig(vec![Fault::new(key, rule, shown(&found.to_string()))])
}

fn of_request(
    path: &str,
    MessageFault {
        key,
        expected,
        found,
        ..
    }: MessageFault,
) -> Error {
    Error::InvalidConfig(vec![Fault::new(format!("{path}{key}"), expected, found)])
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
        for (key, value) in given
            .iter()
            .filter(|(key, value)| *key != "messages" && !value.is_null())
        {
            match (key.as_str(), value) {
                ("tools", _) => conversation.set_tools(value)?,
                ("documents", Value::Array(_)) => {
                    drop(conversation.names.insert(key.clone(), value.clone()))
                }
                ("documents", _) => return Err(fault(key.clone(), "a list", value)),
                ("chat_template_kwargs", Value::Object(names)) => {
                    if let Some(own) = names
                        .keys()
                        .find(|name| matches!(name.as_str(), "messages" | "add_generation_prompt"))
                    {
                        return Err(fault(
                            format!("{key}.{own}"),
                            "names of the template's own",
                            &json!(own),
                        ));
                    }
                    conversation.names.extend(names.clone());
                }
                ("chat_template_kwargs", _) => return Err(fault(key.clone(), "an object", value)),
                _ => {
                    return Err(fault(
                        shown(key),
                        "messages, tools, documents or chat_template_kwargs",
                        &json!(key),
                    ));
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
        let fields = message.as_object();
        let fields = fields.ok_or_else(|| {
            fault(
                format!("messages[{index}]"),
                "an object with role and content",
                message,
            )
        })?;
        read_message(fields)
            .map(Value::Object)
            .map_err(|fault| of_request(&format!("messages[{index}]."), fault))
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
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                message["content"] = Value::from(texts.concat());
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
        let written = self
            .render_chat(&probe, false)
            .map(|rendered| rendered.text)
            .unwrap_or_default();
        written.contains(TEXT)
            && !written.contains(&format!("'{TEXT}'"))
            && !written.contains(&format!("\"{TEXT}\""))
    }
}

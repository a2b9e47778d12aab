//! The chat templates of a folder, and their use.

use std::collections::BTreeMap;

use serde_json::Value;

use super::chat::{Conversation, Rendered, Template};
use super::{CONFIG_FILE, MORE_TEMPLATES, TEMPLATE_FILE, Tokenizer, bad};
use crate::error::{Error, Result};
use crate::formats::{Flaw, foreign};

/// Name of the template for conversations with tools.
const TOOL_TEMPLATE: &str = "tool_use";
/// Name of the main template in a list.
const MAIN: &str = "default";

/// Chat templates by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Templates {
    /// The main one.
    pub(super) main: Option<String>,
    /// The others, ascending.
    pub(super) named: Vec<(String, String)>,
    /// Places of empty templates, which count as none.
    pub(super) empty: Vec<String>,
    /// True if `tokenizer_config.json` has another main one than the file.
    pub(super) conflict: bool,
}

impl Templates {
    /// Reads the templates of the documents: files have precedence, and if there is one, no other template of `tokenizer_config.json` counts
    /// but the main one where no file is it.
    ///
    /// # Errors
    /// `tokenizer.invalid` for a file that is no text.
    pub(super) fn of(settings: &Value, documents: &BTreeMap<String, Vec<u8>>) -> Result<Self> {
        let mut all: BTreeMap<String, (String, &str)> = BTreeMap::new();
        for (name, bytes) in documents {
            let named = name.strip_prefix(MORE_TEMPLATES).and_then(|name| name.strip_suffix(".jinja"));
            if let Some(named) = named.or((name == TEMPLATE_FILE).then_some(MAIN)) {
                all.insert(named.to_owned(), (template_text(name, bytes)?.to_owned(), name));
            }
        }
        let files = !all.is_empty();
        let stated = match settings.get("chat_template") {
            Some(Value::String(text)) => vec![(MAIN, text.as_str())],
            Some(Value::Array(list)) => {
                list.iter().filter_map(|entry| Some((entry.get("name")?.as_str()?, entry.get("template")?.as_str()?))).collect()
            }
            _ => Vec::new(),
        };
        let mut templates = Self::default();
        for (name, text) in stated.into_iter().filter(|(name, _)| !files || *name == MAIN) {
            let (used, _) = all.entry(name.to_owned()).or_insert((text.to_owned(), CONFIG_FILE));
            templates.conflict |= files && used != text;
        }
        for (name, (text, place)) in all {
            match name.as_str() {
                _ if text.trim().is_empty() => templates.empty.push(place.to_owned()),
                MAIN => templates.main = Some(text),
                _ => templates.named.push((name, text)),
            }
        }
        Ok(templates)
    }
}

/// Returns the text of the chat template in the file `name`. Refuses a file that is something else: every text would be rendered with it.
fn template_text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let flaw = foreign(bytes).filter(|_| !bytes.trim_ascii().is_empty());
    if let Some(Flaw { found, hint }) = flaw {
        let hint = format!("{hint}, or delete it so that the template of tokenizer_config.json counts");
        return Err(Error::Tokenizer { what: name.to_owned(), reason: format!("{found}, not a template: {hint}") });
    }
    std::str::from_utf8(bytes).map_err(|error| bad(name, error))
}

#[doc(hidden)]
impl Tokenizer {
    /// Returns true if the chat template writes the date.
    pub fn asks_for_date(&self) -> bool {
        let tools = self.templates.named.iter().filter(|(name, _)| name == TOOL_TEMPLATE).map(|(_, template)| template.as_str());
        self.chat_template().into_iter().chain(tools).any(|template| template.contains("strftime_now"))
    }

    /// Returns the text of the chat template.
    pub fn chat_template(&self) -> Option<&str> {
        self.templates.main.as_deref()
    }

    /// Returns the other chat templates by name, ascending; [`Self::chat_template`] returns the main one.
    pub fn named_templates(&self) -> &[(String, String)] {
        &self.templates.named
    }

    /// Returns true if a chat template has a word anywhere, as one that reads a key or a variable does.
    pub(crate) fn templates_name(&self, word: &str) -> bool {
        let named = self.templates.named.iter().map(|(_, template)| template.as_str());
        self.chat_template().into_iter().chain(named).any(|template| template.contains(word))
    }

    /// Returns the template of a conversation, which is compiled when it is used first: with tools, the one named `tool_use`, if there is
    /// one, as in transformers.
    fn template_for(&self, conversation: &Conversation) -> Result<&Template> {
        let tools = conversation.names.get("tools").is_some_and(|tools| !tools.is_null());
        let named = self.templates.named.iter().find(|(name, _)| tools && name == TOOL_TEMPLATE).map(|(_, template)| template.as_str());
        let [main, with_tools] = &self.compiled;
        let compiled = if named.is_some() { with_tools } else { main };
        if let Some(template) = compiled.get() {
            return Ok(template);
        }
        let absent = || Error::Template { reason: "the model has no chat template".to_owned() };
        let template = Template::compile(named.or(self.chat_template()).ok_or_else(absent)?)?;
        Ok(compiled.get_or_init(|| template))
    }

    /// Checks that there is a chat template, and that it is Jinja.
    ///
    /// # Errors
    /// `tokenizer.template` for a missing or faulty template, `template.budget` for one that is too long.
    pub(crate) fn check_chat_template(&self) -> Result<()> {
        let empty = || Error::Template { reason: "the chat template is empty".to_owned() };
        self.chat_template().filter(|template| template.trim().is_empty()).map_or(Ok(()), |_| Err(empty()))?;
        self.template_for(&Conversation::default()).map(drop)
    }

    /// Renders a conversation as the model was trained to read it. `add_generation_prompt` opens the assistant's turn at the end.
    ///
    /// # Errors
    /// `tokenizer.template` for a missing or faulty template, or one that refuses the conversation; `template.budget`.
    pub fn render_chat(&self, conversation: &Conversation, add_generation_prompt: bool) -> Result<Rendered> {
        self.template_for(conversation)?.render(conversation, add_generation_prompt, &self.specials)
    }
}

//! The chat templates in `tokenizer_config.json`, and their use.

use serde_json::Value;

use super::Tokenizer;
use super::chat::{Conversation, Rendered, Template};
use crate::error::{Error, Result};

/// Name of the template for conversations with tools.
const TOOL_TEMPLATE: &str = "tool_use";

#[doc(hidden)]
impl Tokenizer {
    /// Returns true if the chat template writes the date.
    pub fn asks_for_date(&self) -> bool {
        let tools = self.named.iter().filter(|(name, _)| name == TOOL_TEMPLATE).map(|(_, template)| template.as_str());
        self.chat_template().into_iter().chain(tools).any(|template| template.contains("strftime_now"))
    }

    /// Returns the text of the chat template.
    pub fn chat_template(&self) -> Option<&str> {
        self.template.as_deref()
    }

    /// Returns the other chat templates by name, ascending; [`Self::chat_template`] returns the main one.
    pub fn named_templates(&self) -> &[(String, String)] {
        &self.named
    }

    /// Returns true if a chat template has a word anywhere, as one that reads a key or a variable does.
    pub(crate) fn templates_name(&self, word: &str) -> bool {
        let named = self.named.iter().map(|(_, template)| template.as_str());
        self.chat_template().into_iter().chain(named).any(|template| template.contains(word))
    }

    /// Returns the template of a conversation, which is compiled when it is used first: with tools, the one named `tool_use`, if there is
    /// one, as in transformers.
    fn template_for(&self, conversation: &Conversation) -> Result<&Template> {
        let tools = conversation.names.get("tools").is_some_and(|tools| !tools.is_null());
        let named = self.named.iter().find(|(name, _)| tools && name == TOOL_TEMPLATE).map(|(_, template)| template.as_str());
        let [main, with_tools] = &self.compiled;
        let compiled = if named.is_some() { with_tools } else { main };
        if let Some(template) = compiled.get() {
            return Ok(template);
        }
        let absent = || Error::Template { reason: "the model has no chat template".to_owned() };
        let main = self.template.as_deref().ok_or_else(absent)?;
        let template = Template::compile(named.unwrap_or(main))?;
        Ok(compiled.get_or_init(|| template))
    }

    /// Checks that there is a chat template, and that it is Jinja.
    ///
    /// # Errors
    /// `tokenizer.template` for a missing or faulty template, `template.budget` for one that is too long.
    pub(crate) fn check_chat_template(&self) -> Result<()> {
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

/// Returns the templates of a list of `{name, template}` other than `default`, sorted by name; the first one of each name counts.
pub(super) fn named_of(config: &Value) -> Vec<(String, String)> {
    let list = config.get("chat_template").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let pair = |entry: &Value| Some((entry.get("name")?.as_str()?.to_owned(), entry.get("template")?.as_str()?.to_owned()));
    let mut named: Vec<(String, String)> = list.iter().filter_map(pair).filter(|(name, _)| name != "default").collect();
    named.sort_by(|a, b| a.0.cmp(&b.0));
    named.dedup_by(|later, first| later.0 == first.0);
    named
}

/// Returns the main template: `chat_template` is a text, or a list of `{name, template}` of which `default` is used.
pub(super) fn template_of(config: &Value) -> Option<String> {
    let value = config.get("chat_template")?;
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let named = value.as_array()?.iter().find(|entry| entry.get("name").and_then(Value::as_str) == Some("default"))?;
    named.get("template")?.as_str().map(str::to_owned)
}

/// Returns the text of a special token, which is written as a text or as `{"content": text, …}`.
pub(super) fn special_text(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
}

//! The chat templates of a folder, and their use.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::chat::{Conversation, Rendered, Template};
use super::{CONFIG_FILE, MORE_TEMPLATES, TEMPLATE_FILE, Tokenizer, bad, listed_briefly};
use crate::error::{Error, Result, shown};
use crate::formats::{Flaw, foreign};

/// Name of the template for conversations with tools.
const TOOL_TEMPLATE: &str = "tool_use";
/// Name of the main template in a list.
const MAIN: &str = "default";

/// Word for the template of ChatML.
const CHATML: &str = "chatml";
/// ChatML: each message between two marks, its role on the first line.
const CHATML_TEMPLATE: &str = concat!(
    "{% for message in messages %}",
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}",
    "{% endfor %}",
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
);

/// Chat templates by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Templates {
    /// The main one.
    pub main: Option<String>,
    /// The others, ascending.
    pub named: Vec<(String, String)>,
    /// Places of empty templates, which count as none.
    pub empty: Vec<String>,
    /// True if `tokenizer_config.json` has another main one than the file.
    pub conflict: bool,
}

impl Templates {
    /// Reads the templates of the documents: files have precedence, and if there is one, no other template of `tokenizer_config.json` counts
    /// but the main one where no file is it. An empty template counts as none, wherever it is.
    ///
    /// # Errors
    /// `tokenizer.invalid` for a file that is no text, and for a `chat_template` of `tokenizer_config.json` that is none, unless a file is the
    /// main one, next to which transformers does not read it.
    pub fn of(settings: &Value, documents: &BTreeMap<String, Vec<u8>>) -> Result<Self> {
        let mut templates = Self::default();
        let mut all: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, bytes) in documents {
            let named = name.strip_prefix(MORE_TEMPLATES);
            let named = named.and_then(|name| name.strip_suffix(".jinja"));
            let Some(named) = named.or((name == TEMPLATE_FILE).then_some(MAIN)) else {
                continue;
            };
            let text = template_text(name, bytes)?;
            if text.trim().is_empty() {
                templates.empty.push(name.clone());
            } else {
                all.insert(named, text);
            }
        }
        let files = !all.is_empty();
        let stated = match stated(settings) {
            Err(_) if all.contains_key(MAIN) => {
                templates.conflict = true;
                Vec::new()
            }
            stated => stated?,
        };
        // As transformers does, the last of several with one name is taken.
        let stated: BTreeMap<&str, &str> = stated.into_iter().collect();
        for (name, text) in stated {
            if files && name != MAIN {
                continue;
            }
            if text.trim().is_empty() {
                templates.empty.push(CONFIG_FILE.to_owned());
            } else {
                templates.conflict |= *all.entry(name).or_insert(text) != text && files;
            }
        }
        templates.main = all.remove(MAIN).map(str::to_owned);
        let named = all.into_iter();
        templates.named = named
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        Ok(templates)
    }
}

/// Returns the templates that `tokenizer_config.json` states, with their names: one text, which is the main one, a list of `{name, template}`,
/// or an object of texts by name.
fn stated<'a>(settings: &'a Value) -> Result<Vec<(&'a str, &'a str)>> {
    let wrong = |found: &Value| {
        let found = shown(&found.to_string());
        Error::Tokenizer {
            what: CONFIG_FILE.to_owned(),
            reason: format!("chat_template: expected a text or templates by name, found {found}"),
        }
    };
    match settings.get("chat_template") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![(MAIN, text.as_str())]),
        Some(Value::Object(texts)) => {
            let named = |(name, text): (&'a String, &'a Value)| match text {
                Value::String(text) => Ok((name.as_str(), text.as_str())),
                other => Err(wrong(other)),
            };
            texts.iter().map(named).collect()
        }
        Some(Value::Array(list)) => {
            let named = |entry: &'a Value| match (&entry["name"], &entry["template"]) {
                (Value::String(name), Value::String(text)) => Ok((name.as_str(), text.as_str())),
                _ => Err(wrong(entry)),
            };
            list.iter().map(named).collect()
        }
        Some(other) => Err(wrong(other)),
    }
}

/// Returns the text of the chat template in the file `name`. Refuses a file that is something else: every text would be rendered with it.
fn template_text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str> {
    let flaw = foreign(bytes).filter(|_| !bytes.trim_ascii().is_empty());
    if let Some(Flaw { found, hint }) = flaw {
        let deleted = "delete it so that the template of tokenizer_config.json counts";
        return Err(Error::Tokenizer {
            what: name.to_owned(),
            reason: format!("{found}, not a template: {hint}, or {deleted}"),
        });
    }
    std::str::from_utf8(bytes).map_err(|error| bad(name, error))
}

#[doc(hidden)]
impl Tokenizer {
    /// Returns true if the chat template writes the date.
    pub fn asks_for_date(&self) -> bool {
        let mut used = self.chat_template().into_iter().chain(self.tool_template());
        used.any(|template| template.contains("strftime_now"))
    }

    /// Returns the text of the chat template.
    pub fn chat_template(&self) -> Option<&str> {
        self.templates.main.as_deref()
    }

    /// Replaces the main chat template by that of a file. Another one is named in the warnings.
    ///
    /// # Errors
    /// `tokenizer.invalid` for a file that is no template.
    pub(crate) fn take_template_file(&mut self, bytes: &[u8]) -> Result<()> {
        let text = template_text(TEMPLATE_FILE, bytes)?;
        let main = self.chat_template();
        self.templates.conflict |= main.is_some_and(|main| main != text);
        self.set_chat_template(text)
    }

    /// Replaces the main chat template by this text, or by that of ChatML at the word `chatml`.
    ///
    /// # Errors
    /// `tokenizer.invalid` for an empty text, `chat.template` for one that is no template.
    pub fn set_chat_template(&mut self, template: &str) -> Result<()> {
        let text = if template == CHATML {
            CHATML_TEMPLATE
        } else {
            template
        };
        if text.trim().is_empty() {
            return Err(bad(TEMPLATE_FILE, "the template is empty"));
        }
        self.templates.main = Some(text.to_owned());
        self.compiled = Default::default();
        (self.turn, self.controls) = Default::default();
        let assets = Arc::make_mut(&mut self.assets);
        assets.retain(|(name, _)| name != TEMPLATE_FILE);
        assets.push((TEMPLATE_FILE.to_owned(), text.as_bytes().to_vec()));
        self.check_chat_template()
    }

    /// Returns the other chat templates by name, ascending; [`Self::chat_template`] returns the main one.
    pub fn named_templates(&self) -> &[(String, String)] {
        &self.templates.named
    }

    /// Returns true if a chat template has a word anywhere, as one that reads a key or a variable does.
    pub(crate) fn templates_name(&self, word: &str) -> bool {
        let named = self
            .templates
            .named
            .iter()
            .map(|(_, template)| template.as_str());
        let mut all = self.chat_template().into_iter().chain(named);
        all.any(|template| template.contains(word))
    }

    /// Returns true if conversations with tools have a template of their own.
    pub(crate) fn has_tool_template(&self) -> bool {
        self.tool_template().is_some()
    }

    /// Returns the text of the template for conversations with tools, if there is one of its own.
    fn tool_template(&self) -> Option<&str> {
        let mut named = self.templates.named.iter();
        let (_, template) = named.find(|(name, _)| name == TOOL_TEMPLATE)?;
        Some(template)
    }

    /// Returns the template of a conversation: with tools, the one named `tool_use`, if there is one, as in transformers.
    fn template_for(&self, conversation: &Conversation) -> Result<&Template> {
        let tools = conversation.names.get("tools");
        let has_tools = tools.is_some_and(|tools| !tools.is_null());
        self.template(self.tool_template().filter(|_| has_tools))
    }

    /// Returns the template for tools that is given, or else the main one. It is compiled when it is used first.
    fn template(&self, for_tools: Option<&str>) -> Result<&Template> {
        let [main, with_tools] = &self.compiled;
        let compiled = for_tools.map_or(main, |_| with_tools);
        if let Some(template) = compiled.get() {
            return Ok(template);
        }
        let text = for_tools.or(self.chat_template());
        let template = Template::compile(text.ok_or_else(|| self.without_template())?)?;
        Ok(compiled.get_or_init(|| template))
    }

    /// Returns the refusal of a conversation for which there is no template.
    fn without_template(&self) -> Error {
        let names = self.templates.named.iter().map(|(name, _)| shown(name));
        let names: Vec<String> = names.collect();
        if names.is_empty() {
            let reason = "the model has no chat template".to_owned();
            return Error::Template { reason };
        }
        let need = match self.has_tool_template() {
            true => ", which a conversation without tools needs",
            false => "",
        };
        let names = listed_briefly(&names);
        Error::Template {
            reason: format!(
                "the model has no default chat template{need}, only named ones: {names}"
            ),
        }
    }

    /// Checks that there is a chat template, if only for conversations with tools, and that it is Jinja.
    ///
    /// # Errors
    /// `tokenizer.template` for a missing or faulty template, `template.budget` for one that is too long.
    pub(crate) fn check_chat_template(&self) -> Result<()> {
        let alone = self.chat_template().is_none();
        self.template(self.tool_template().filter(|_| alone))
            .map(drop)
    }

    /// Renders a conversation as the model was trained to read it. `add_generation_prompt` opens the assistant's turn at the end.
    ///
    /// # Errors
    /// `tokenizer.template` for a missing or faulty template, or one that refuses the conversation; `template.budget`.
    pub fn render_chat(
        &self,
        conversation: &Conversation,
        add_generation_prompt: bool,
    ) -> Result<Rendered> {
        let template = self.template_for(conversation)?;
        template.render(conversation, add_generation_prompt, &self.specials)
    }
}

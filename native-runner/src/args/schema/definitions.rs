//! The options of settings, as the definitions of the schema describe them.

use serde_json::{Value, json};

use super::help::{default_text, listed, lower_first};
use super::{GROUPS, Group, HEADING, Kind, SHORT, Setting};

/// Returns the option's name of the setting at `path`.
fn option_name(path: &[&str]) -> String {
    let short = SHORT.iter().find(|(setting, _)| setting[..] == *path);
    let name = match (short, path) {
        (Some((_, name)), _) => (*name).to_string(),
        (None, [group, key]) => {
            let group = GROUPS
                .iter()
                .find(|known| known.name == *group)
                .expect("a group of settings");
            format!("{}-{key}", group.prefix)
        }
        (None, path) => path.join("-"),
    };
    name.replace('_', "-")
}

/// Definitions of a schema, to which its parts refer.
pub(super) struct Schema<'a> {
    pub(super) definitions: &'a Value,
}

impl Schema<'_> {
    /// Follows a reference, and leaves out that a value may be null.
    fn resolved<'b>(&'b self, part: &'b Value) -> &'b Value {
        let part = match part["anyOf"].as_array().map(Vec::as_slice) {
            Some([inner, null]) if null["type"] == "null" => inner,
            _ => part,
        };
        match part["$ref"]
            .as_str()
            .and_then(|reference| reference.strip_prefix("#/$defs/"))
        {
            Some(name) => &self.definitions[name],
            None => part,
        }
    }

    pub(super) fn of_run(&self, properties: &Value) -> Vec<Setting> {
        let all = properties.as_object().expect("properties of TrainConfig");
        all.iter()
            .flat_map(
                |(key, part)| match GROUPS.iter().find(|group| group.name == key) {
                    None => vec![self.setting(&[key], part, &part["description"], HEADING)],
                    Some(group) => self.of_group(group, part),
                },
            )
            .collect()
    }

    /// Returns the settings inside a setting. If its keys depend on its `type`, a description says for which types it is meant.
    fn of_group(&self, group: &Group, part: &Value) -> Vec<Setting> {
        let Group { name, heading, .. } = *group;
        let resolved = self.resolved(part);
        let Some(variants) = resolved["oneOf"].as_array() else {
            let keys = resolved["properties"]
                .as_object()
                .expect("settings inside a setting");
            let mut settings: Vec<Setting> = keys
                .iter()
                .map(|(key, inner)| {
                    self.setting(&[name, key], inner, &inner["description"], heading)
                })
                .collect();
            // The option that chooses the group has no value by default.
            for setting in settings
                .iter_mut()
                .filter(|setting| setting.option == group.option)
            {
                setting.help = part["description"]
                    .as_str()
                    .expect("a description")
                    .to_string()
                    + " Value: "
                    + &lower_first(&setting.help);
                setting.notes.clear();
            }
            return settings;
        };
        let type_of = |variant: &Value| {
            variant["properties"]["type"]["const"]
                .as_str()
                .expect("a type")
                .to_string()
        };
        let types: Vec<String> = variants.iter().map(type_of).collect();
        let choices: Vec<Value> = types.iter().map(|word| json!({ "const": word })).collect();
        let choice = json!({ "oneOf": choices, "default": part["default"]["type"] });
        let mut settings =
            vec![self.setting(&[name, "type"], &choice, &part["description"], HEADING)];
        let mut keys: Vec<&str> = Vec::new();
        for variant in variants {
            let own = variant["properties"]
                .as_object()
                .expect("settings of a type")
                .keys();
            let fresh: Vec<&str> = own
                .map(String::as_str)
                .filter(|key| *key != "type" && !keys.contains(key))
                .collect();
            keys.extend(fresh);
        }
        for key in keys {
            let having: Vec<&Value> = variants
                .iter()
                .filter(|variant| !variant["properties"][key].is_null())
                .collect();
            let mut texts: Vec<(String, Vec<String>)> = Vec::new();
            for variant in &having {
                let text = variant["properties"][key]["description"]
                    .as_str()
                    .expect("a description")
                    .to_string();
                match texts.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, types)) => types.push(type_of(variant)),
                    None => texts.push((text, vec![type_of(variant)])),
                }
            }
            let everywhere = having.len() == variants.len() && texts.len() == 1;
            let text = |(text, types): &(String, Vec<String>)| {
                if everywhere {
                    text.clone()
                } else {
                    format!("With {}: {text}", listed(types))
                }
            };
            let description = texts.iter().map(text).collect::<Vec<_>>().join(" ");
            let mut inner = having[0]["properties"][key].clone();
            if having
                .iter()
                .any(|variant| variant["properties"][key]["default"] != inner["default"])
            {
                inner["default"] = Value::Null;
            }
            settings.push(self.setting(&[name, key], &inner, &description.into(), heading));
        }
        settings
    }

    fn setting(
        &self,
        path: &[&str],
        part: &Value,
        description: &Value,
        heading: &'static str,
    ) -> Setting {
        let (kind, placeholder, words) = self.kind(path, part);
        let description = description.as_str().expect("a description");
        let option = option_name(path);
        let (option, help) = match kind {
            Kind::Flag { value: false } => (
                format!("no-{option}"),
                format!("Turn this off: {}", lower_first(description)),
            ),
            Kind::Steps => (
                option,
                format!("{description} +N: N more than the resumed run has made."),
            ),
            _ => (option, description.to_string()),
        };
        let mut notes = if words.is_empty() {
            String::new()
        } else {
            format!(" [possible values: {}]", words.join(", "))
        };
        notes += &default_text(&part["default"], &help);
        let requires = match path {
            ["adapter", _] => Some("lora"),
            ["block_coordinate", key] if *key != "blocks" => Some("block-coordinate"),
            _ => None,
        };
        let path = path.iter().map(|key| (*key).to_string()).collect();
        Setting {
            path,
            option,
            kind,
            placeholder,
            help,
            notes,
            heading,
            requires,
        }
    }

    /// Returns the form of a setting's value, its placeholder, and its words if only some are allowed.
    fn kind(&self, path: &[&str], part: &Value) -> (Kind, &'static str, Vec<String>) {
        let resolved = self.resolved(part);
        if let Some(choices) = resolved["oneOf"].as_array()
            && choices.iter().all(|choice| choice["const"].is_string())
        {
            return (
                Kind::Text,
                "NAME",
                choices
                    .iter()
                    .map(|choice| choice["const"].as_str().unwrap_or_default().to_string())
                    .collect(),
            );
        }
        if resolved["anyOf"]
            .as_array()
            .is_some_and(|forms| forms.iter().any(|form| form["type"] == "string"))
        {
            return (Kind::Names, "NAMES", Vec::new());
        }
        let kind = match resolved["type"]
            .as_array()
            .map_or(&resolved["type"], |types| &types[0])
            .as_str()
        {
            Some("integer") if path == ["steps"] => (Kind::Steps, "N"),
            Some("integer") if resolved["minimum"].is_null() => (Kind::Signed, "N"),
            Some("integer") => (Kind::Integer, "N"),
            Some("number") => (Kind::Number, "X"),
            Some("boolean") => (
                Kind::Flag {
                    value: part["default"] != true,
                },
                "",
            ),
            Some("string") => (Kind::Text, "TEXT"),
            Some("array") if resolved["items"]["type"] == "number" => (Kind::Numbers, "X,…"),
            Some("array") if resolved["items"]["type"] == "string" => (Kind::Names, "NAMES"),
            Some("object") => (Kind::Json, "JSON"),
            _ => (Kind::Word, "JSON"),
        };
        (kind.0, kind.1, Vec::new())
    }
}

//! Parameter groups: who is optimized how (`optimizers.md` §9). First match wins.

use super::ParamInfo;
use crate::config::{GroupConfig, OptimizerConfig, TrainConfig};
use crate::error::{Error, Fault, Result};

/// A group with its members.
#[derive(Debug)]
pub(super) struct Group {
    /// Where its rule stands in the configuration.
    pub key: String,
    pub pattern: String,
    pub rule: OptimizerConfig,
    pub rate_scale: f64,
    pub frozen: bool,
    /// Indices of the parameters, in their order.
    pub members: Vec<usize>,
}

/// True if the whole of `name` matches: `*` any text, `?` one character, `{a,b}` either.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    if let Some(open) = pattern.find('{')
        && let Some(close) = pattern[open..].find('}').map(|at| open + at)
    {
        return pattern[open + 1..close].split(',').any(|option| {
            let expanded = format!("{}{option}{}", &pattern[..open], &pattern[close + 1..]);
            glob_matches(&expanded, name)
        });
    }
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                // Let the last star take one character more.
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Sorts parameters into groups; a pattern without parameters and a parameter without pattern are refused by name.
pub(super) fn resolve(config: &TrainConfig, params: &[ParamInfo]) -> Result<Vec<Group>> {
    let everything = [GroupConfig::new("*")];
    let configured = if config.groups.is_empty() { &everything[..] } else { &config.groups };
    let mut groups: Vec<Group> = configured
        .iter()
        .enumerate()
        .map(|(index, group)| Group {
            key: if config.groups.is_empty() { "optimizer".into() } else { format!("groups[{index}].optimizer") },
            pattern: group.pattern.clone(),
            rule: group.rule(&config.optimizer),
            rate_scale: group.learning_rate_scale,
            frozen: group.frozen,
            members: Vec::new(),
        })
        .collect();
    let mut faults = Vec::new();
    for (at, param) in params.iter().enumerate() {
        match groups.iter_mut().find(|group| glob_matches(&group.pattern, &param.name)) {
            Some(group) => group.members.push(at),
            None => faults.push(Fault::new(&param.name, "a group whose pattern matches", "none")),
        }
    }
    for (index, group) in groups.iter().enumerate().filter(|(_, group)| group.members.is_empty()) {
        faults.push(Fault::new(
            format!("groups[{index}].pattern"),
            "a pattern that matches parameters of no earlier group",
            &group.pattern,
        ));
    }
    if faults.is_empty() { Ok(groups) } else { Err(Error::Groups(faults)) }
}

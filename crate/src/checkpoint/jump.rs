//! Compares the learning rates of the first step after a resume with those of the last step before it.

use std::collections::BTreeMap;

use super::manifest::Manifest;
use super::settings::changes_of_rate;
use crate::config::{TrainConfig, glob_matches};
use crate::error::{Result, shown, word};
use crate::schedule;
use crate::train::{Notice, Progress};

/// The rates of a parameter: those of its group, which scales the run's.
#[derive(Debug, Clone, Copy)]
struct Rates<'a> {
    last: f64,
    next: f64,
    /// Pattern of the group that the parameter belongs to now, if groups are configured.
    group: Option<&'a str>,
}

impl Rates<'_> {
    /// How far the rates are apart, in either direction.
    fn distance(&self) -> f64 {
        (self.next.ln() - self.last.ln()).abs()
    }
}

/// The warning that a parameter's next rate differs from its last one by more than a quarter of it, if the saved settings did not plan
/// that. It names the rates that are farthest apart.
pub(super) fn jump_of_rate(
    manifest: &Manifest,
    config: &TrainConfig,
    now: Progress,
) -> Result<Option<Notice>> {
    let saved = manifest.progress;
    let done = saved.completed_steps;
    if done == 0 {
        return Ok(None);
    }
    let rate = |step: u64, config: &TrainConfig, progress: Progress| {
        let planned = schedule::learning_rate(
            step,
            config.learning_rate,
            &config.schedule,
            progress.schedule_start,
        );
        progress.manual_learning_rate.unwrap_or(planned)
    };
    let [last, planned] = [done, done + 1].map(|step| rate(step, &manifest.train, saved));
    let next = rate(done + 1, config, now);
    let jump = |(parameter, scale): (&str, f64)| {
        let (new_scale, group) = scale_of(config, parameter)?;
        let rates = Rates {
            last: last * scale,
            next: next * new_scale,
            group,
        };
        let jumps =
            rates.next != planned * scale && (rates.next - rates.last).abs() > rates.last / 4.0;
        jumps.then_some(rates)
    };
    // The first of the farthest: the maximum of a list is the last of its equal items.
    let jumps = saved_scales(manifest).into_iter().rev().filter_map(jump);
    let farthest = jumps.max_by(|a, b| a.distance().total_cmp(&b.distance()));
    let Some(Rates { last, next, group }) = farthest else {
        return Ok(None);
    };
    let mut why = changes_of_rate(&manifest.train, config)?;
    if let (Some(rate), None) = (saved.manual_learning_rate, now.manual_learning_rate) {
        why.push(format!("a rate of {rate:.3e} set by hand has ended"));
    }
    if why.is_empty() {
        why.push("the groups of the settings replace the saved ones".to_string());
    }
    let of = group.map_or_else(String::new, |pattern| {
        format!(" in the group \"{}\"", shown(pattern))
    });
    let found = format!(
        "step {} has a rate of {next:.3e}{of}, and step {done} had {last:.3e}: {}",
        done + 1,
        why.join("; ")
    );
    Ok(Some(Notice::filled(
        word!("schedule.jump"),
        ["", "", &found],
    )))
}

/// The factor of the rate of each parameter that was trained, by the saved groups.
fn saved_scales(manifest: &Manifest) -> BTreeMap<&str, f64> {
    let mut scales = BTreeMap::new();
    for group in &manifest.groups {
        let semantics = &group.parameter_semantics;
        if !semantics.frozen {
            let members = group.members.iter();
            scales.extend(
                members.map(|member| (member.parameter.as_str(), semantics.learning_rate_scale)),
            );
        }
    }
    scales
}

/// The factor of a parameter's rate and the pattern of its group, of which a run without groups has none; `None` for a parameter
/// that is not trained.
fn scale_of<'a>(config: &'a TrainConfig, parameter: &str) -> Option<(f64, Option<&'a str>)> {
    if config.groups.is_empty() {
        return Some((1.0, None));
    }
    let group = config
        .groups
        .iter()
        .find(|group| glob_matches(&group.pattern, parameter))?;
    (!group.frozen).then_some((group.learning_rate_scale, Some(group.pattern.as_str())))
}

//! Checks that tensors and groups fit each other (crate/FORMATS.md, "Manifest and groups"). No payload is needed.

use std::collections::BTreeMap;

use super::expected::ExpectedState;
use super::findings::{Findings, Steps, listed};
use super::group::{GroupMember, ModelStateGroupAssignment};
use super::receipt::MAX_COUNT;
use super::tensor_manifest::{ModelStateTensorManifest, TensorRole};
use crate::config::{FINITE, Hyperparameter, OptimizerKind, Range, StateWord};
use crate::error::{Result, Word, word};

const DUPLICATE: Word = word!("state.group.duplicate");
const MEMBER_MISSING: Word = word!("state.group.member-missing");
const ROLE: Word = word!("state.group.role");
const STATE_WORDS: Word = word!("state.group.state-words");
const STATE_SHAPE: Word = word!("state.group.state-shape");
const STATE_DTYPE: Word = word!("state.group.state-dtype");
const HYPERPARAMETER: Word = word!("state.group.hyperparameter");
const KIND: Word = word!("state.group.kind");
const SHARED: Word = word!("state.tensor.shared");
const ORPHAN: Word = word!("state.tensor.orphan");
const STEP_RANGE: Word = word!("state.step.range");

const STEPS: Steps = &[
    &[DUPLICATE],
    &[MEMBER_MISSING],
    &[ROLE],
    &[STATE_WORDS],
    &[STATE_SHAPE],
    &[STATE_DTYPE],
    &[HYPERPARAMETER],
    &[KIND],
    &[SHARED],
    &[ORPHAN],
    &[STEP_RANGE],
];

type Tensors = BTreeMap<String, ModelStateTensorManifest>;

/// Checks `groups` against the tensors of their state dict. `step_of` returns the value of the `step` tensor of a key, where it is known. An
/// optimizer of an unknown kind is plain data: only dtypes and roles of its state are checked.
///
/// # Errors
/// `state.group.duplicate`, `.member-missing`, `.role`, `.state-words`, `.state-shape`, `.state-dtype`, `.hyperparameter`,
/// `state.tensor.shared`, `.orphan`, `state.step.range`: all findings, in this order and then by subject.
pub fn check_groups(
    tensors: &Tensors,
    groups: &[ModelStateGroupAssignment],
    step_of: &dyn Fn(&str) -> Option<u64>,
    artifact: &str,
) -> Result<()> {
    let mut findings = Findings::new(artifact, STEPS);
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for group in groups {
        *named.entry(&group.group_id).or_default() += 1;
        settings(group, &mut findings);
        for member in &group.members {
            roles(tensors, group, member, &mut findings);
            state(tensors, group, member, &mut findings);
            steps(group, member, step_of, &mut findings);
        }
        if group.applied_steps > MAX_COUNT {
            findings.differs(
                STEP_RANGE,
                &group.group_id,
                "at most 2^53 - 1",
                group.applied_steps,
            );
        }
    }
    for (id, count) in named.into_iter().filter(|(_, count)| *count > 1) {
        findings.differs(DUPLICATE, id, "one group of this name", count);
    }
    claims(tensors, groups, &mut findings);
    findings.result()
}

/// Checks that tabtune can continue training `groups`, which [`check_groups`] found sound.
///
/// # Errors
/// `state.group.kind` for an optimizer that tabtune does not train, and for a `master` tensor; `state.group.state-words` for
/// a member that has state but no `step`: all of them.
pub fn check_trainable(groups: &[ModelStateGroupAssignment], artifact: &str) -> Result<()> {
    let mut findings = Findings::new(artifact, STEPS);
    for group in groups {
        let record = group.optimizer.trained();
        let kind = &record.kind;
        if !OptimizerKind::of_word(kind).is_some_and(|kind| kind.trained) {
            findings.differs(
                KIND,
                &group.group_id,
                OptimizerKind::trained().join(", "),
                kind,
            );
        }
        for member in group
            .members
            .iter()
            .filter(|member| !member.state.is_empty())
        {
            if let Some(key) = member.state.get(&StateWord::Master) {
                findings.lacks(KIND, key, "no state tensor master");
            }
            if !member.state.contains_key(&StateWord::Step) {
                findings.differs(
                    STATE_WORDS,
                    &member.parameter,
                    "step among the state tensors",
                    words(&member.state),
                );
            }
        }
    }
    findings.result()
}

/// Checks that hyperparameters and scales are finite and in their ranges.
fn settings(group: &ModelStateGroupAssignment, findings: &mut Findings<'_>) {
    let semantics = &group.parameter_semantics;
    let scales = [
        ("learning_rate_scale", semantics.learning_rate_scale),
        ("weight_decay_scale", semantics.weight_decay_scale),
    ];
    let own = group
        .optimizer
        .hyperparameters
        .iter()
        .map(|(name, value)| (name.as_str(), *value));
    for (name, value) in own.chain(scales) {
        let Range(expected, holds) =
            Hyperparameter::of_key(name).map_or(FINITE, |known| known.carried);
        if !(value.is_finite() && holds(value)) {
            findings.differs(
                HYPERPARAMETER,
                &format!("{}/{name}", group.group_id),
                expected,
                value,
            );
        }
    }
}

/// Checks that every key is a tensor with the role that the member gives it.
fn roles(
    tensors: &Tensors,
    group: &ModelStateGroupAssignment,
    member: &GroupMember,
    findings: &mut Findings<'_>,
) {
    let state = member
        .state
        .iter()
        .map(|(word, key)| (TensorRole::State(*word), key));
    for (role, key) in std::iter::once((TensorRole::Parameter, &member.parameter)).chain(state) {
        match tensors.get(key) {
            None => findings.lacks(
                MEMBER_MISSING,
                key,
                format!("a tensor, for {}", group.group_id),
            ),
            Some(tensor) if tensor.role != role => findings.differs(ROLE, key, role, tensor.role),
            Some(_) => {}
        }
    }
}

/// Checks that the state tensors are those that the group's kind of optimizer keeps, in shape and dtype, or that there are none.
fn state(
    tensors: &Tensors,
    group: &ModelStateGroupAssignment,
    member: &GroupMember,
    findings: &mut Findings<'_>,
) {
    let state: BTreeMap<StateWord, &ModelStateTensorManifest> = member
        .state
        .iter()
        .filter_map(|(word, key)| Some((*word, tensors.get(key)?)))
        .collect();
    for (word, tensor) in &state {
        let dtypes = word.dtypes();
        if !dtypes.contains(&tensor.dtype.as_str()) {
            findings.differs(
                STATE_DTYPE,
                &member.state[word],
                dtypes.join(", "),
                &tensor.dtype,
            );
        }
    }
    let Some(parameter) = tensors
        .get(&member.parameter)
        .filter(|_| !member.state.is_empty())
    else {
        return;
    };
    let shapes = state
        .iter()
        .map(|(word, tensor)| (*word, tensor.shape.as_slice()))
        .collect();
    let expected_state = ExpectedState::of(&group.optimizer, &parameter.shape, &shapes);
    if let Some(expected_state) = &expected_state {
        let ExpectedState { required, optional } = expected_state;
        let complete = required.keys().all(|word| member.state.contains_key(word));
        let mut given = member.state.keys();
        if !complete || given.any(|word| expected_state.shape(*word).is_none()) {
            let expected = format!("[{}], perhaps [{}]", words(required), words(optional));
            let found = format!("[{}]", words(&member.state));
            findings.differs(STATE_WORDS, &member.parameter, expected, found);
        }
    }
    for (word, tensor) in &state {
        let expected = match &expected_state {
            Some(expected_state) => expected_state.shape(*word),
            // For an unknown kind only the shape of the counter is known.
            None => (*word == StateWord::Step).then_some(&[][..]),
        };
        if let Some(expected) = expected.filter(|expected| *expected != tensor.shape) {
            let shapes = [expected, &tensor.shape].map(|shape| format!("{shape:?}"));
            findings.differs(STATE_SHAPE, &member.state[word], &shapes[0], &shapes[1]);
        }
    }
}

/// Lists the words of state tensors.
fn words<T>(tensors: &BTreeMap<StateWord, T>) -> String {
    listed(tensors.keys().map(|word| word.text()))
}

/// Checks that no member has more steps than its group, and that no step exceeds what JSON holds exactly.
fn steps(
    group: &ModelStateGroupAssignment,
    member: &GroupMember,
    step_of: &dyn Fn(&str) -> Option<u64>,
    findings: &mut Findings<'_>,
) {
    let Some((key, step)) = member
        .state
        .get(&StateWord::Step)
        .and_then(|key| Some((key, step_of(key)?)))
    else {
        return;
    };
    if step > MAX_COUNT {
        findings.differs(STEP_RANGE, key, "at most 2^53 - 1", step);
    } else if step > group.applied_steps {
        let expected = format!(
            "at most {}, the applied steps of {}",
            group.applied_steps, group.group_id
        );
        findings.differs(STEP_RANGE, key, expected, step);
    }
}

/// Checks that no tensor belongs to two members, and that every state tensor belongs to one.
fn claims(tensors: &Tensors, groups: &[ModelStateGroupAssignment], findings: &mut Findings<'_>) {
    let mut claims: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for group in groups {
        for key in group.members.iter().flat_map(GroupMember::keys) {
            claims.entry(key).or_default().push(&group.group_id);
        }
    }
    for (key, groups) in claims.iter().filter(|(_, groups)| groups.len() > 1) {
        findings.differs(
            SHARED,
            key,
            "one member that has it",
            listed(groups.iter().copied()),
        );
    }
    let orphans = tensors
        .iter()
        .filter(|(key, tensor)| tensor.role.is_state() && !claims.contains_key(key.as_str()));
    for (key, _) in orphans {
        findings.lacks(ORPHAN, key, "a group that has it");
    }
}

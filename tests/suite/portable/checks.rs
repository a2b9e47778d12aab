//! Checks of groups against their tensors: each kind of optimizer without faults, and every fault with its code.

use serde_json::json;
use tabtune::Error;
use tabtune::state::{
    ModelStateGroupAssignment, ModelStateTensorManifest, TensorRole, check_groups, check_trainable,
};

use super::vectors::{Tensors, refusals, state_g, told};

/// A tensor: its name or state word, dtype and shape.
type Entry<'a> = (&'a str, &'a str, &'a [u64]);

fn check(tensors: &Tensors, groups: &[ModelStateGroupAssignment]) -> Result<(), Error> {
    check_groups(tensors, groups, &|_| None, "state")
}

fn tensors(entries: &[Entry<'_>]) -> Tensors {
    entries
        .iter()
        .map(|(key, dtype, shape)| {
            (
                key.to_string(),
                ModelStateTensorManifest::of_name(key, dtype, shape),
            )
        })
        .collect()
}

/// Makes a group of one kind over the parameter `p` of `shape`, with these state tensors: (word, dtype, shape).
fn one(
    kind: &str,
    shape: &[u64],
    state: &[Entry<'_>],
) -> (Tensors, Vec<ModelStateGroupAssignment>) {
    let keys: Vec<String> = state.iter().map(|(word, ..)| format!("p:{word}")).collect();
    let named: Vec<_> = keys
        .iter()
        .zip(state)
        .map(|(key, (_, dtype, shape))| (key.as_str(), *dtype, *shape))
        .collect();
    let all: Vec<_> = std::iter::once(("p", "BF16", shape)).chain(named).collect();
    let members: serde_json::Map<_, _> = state
        .iter()
        .map(|(word, ..)| (word.to_string(), json!(format!("p:{word}"))))
        .collect();
    let group = json!({
        "group_id": "g", "class": "mixed", "model_tree_path": [], "optimizer": {"kind": kind}, "parameter_semantics": {},
        "members": [{"parameter": "p", "state": members}], "applied_steps": 9,
    });
    (tensors(&all), vec![serde_json::from_value(group).unwrap()])
}

/// Returns code and subject of the faults of such a group.
#[track_caller]
fn wrong(kind: &str, shape: &[u64], state: &[Entry<'_>]) -> Vec<(&'static str, String)> {
    let (tensors, groups) = one(kind, shape, state);
    told(check(&tensors, &groups))
}

fn finding(code: &'static str, subject: &str) -> (&'static str, String) {
    (code, subject.to_string())
}

const P: &[u64] = &[2, 3, 8];
const STEP: Entry<'static> = ("step", "U64", &[]);

#[test]
fn portable_checks_pass_every_kind() {
    let (tensors, groups) = state_g();
    let step = |key: &str| Some(if key.starts_with("embed") { 3 } else { 7 });
    check_groups(&tensors, &groups, &step, "state").unwrap();
    check_trainable(&groups, "state").unwrap();
    let moments: [Entry<'_>; 2] = [("m", "BF16", P), ("v", "F16", P)];
    let master: Entry<'_> = ("master", "F32", P);
    let cases: [(&str, &[u64], Vec<Entry<'_>>); 16] = [
        ("sgd", P, vec![]),
        ("sgd", P, vec![STEP]),
        ("lars", P, vec![("momentum", "F32", P), STEP, master]),
        ("adam", P, moments.to_vec()),
        ("adamw", P, [&moments[..], &[STEP, master]].concat()),
        ("lamb", P, [&moments[..], &[STEP]].concat()),
        ("adamw", P, vec![]),
        (
            "adafactor",
            P,
            vec![("row", "F32", &[6]), ("col", "F32", &[8]), STEP],
        ),
        (
            "adafactor",
            P,
            vec![
                ("row", "F32", &[6]),
                ("col", "F32", &[8]),
                ("m", "BF16", P),
                master,
            ],
        ),
        ("adafactor", &[5], vec![("row", "F32", &[5]), STEP]),
        ("adafactor", &[], vec![("row", "F32", &[])]),
        (
            "apollo",
            P,
            vec![
                ("m", "F32", &[4, 8]),
                ("v", "F32", &[4, 8]),
                ("norm", "F32", &[]),
                STEP,
            ],
        ),
        (
            "apollo",
            &[9, 4],
            vec![
                ("m", "F32", &[2, 9]),
                ("v", "F32", &[2, 9]),
                ("norm", "F32", &[]),
            ],
        ),
        ("apollo", P, moments.to_vec()),
        (
            "apollo",
            &[5],
            vec![("m", "F32", &[5]), ("v", "F32", &[5]), STEP],
        ),
        // Plain data of an unknown kind.
        ("muon", P, vec![("momentum", "F32", &[1]), STEP]),
    ];
    for (kind, shape, state) in cases {
        let (tensors, groups) = one(kind, shape, &state);
        check(&tensors, &groups)
            .unwrap_or_else(|error| panic!("{kind} {shape:?} {state:?}: {error}"));
    }
    // A parameter without a group, and a buffer, need no state.
    let mut free = super::checks::tensors(&[("free", "F32", &[2]), ("running", "I64", &[])]);
    free.get_mut("running").unwrap().role = TensorRole::Buffer;
    check(&free, &[]).unwrap();
}

#[test]
fn portable_checks_refuse_words_of_another_kind() {
    let words = "state.group.state-words";
    let m: Entry<'_> = ("m", "F32", P);
    for (kind, state) in [
        ("sgd", vec![m]),
        ("lars", vec![("norm", "F32", &[][..])]),
        ("adamw", vec![m]),
        ("adamw", vec![STEP]),
        ("lamb", vec![m, ("v", "F32", P), ("momentum", "F32", P)]),
        ("adafactor", vec![("row", "F32", &[6][..])]),
        ("adafactor", vec![m, STEP]),
        (
            "adafactor",
            vec![("row", "F32", &[6]), ("col", "F32", &[8]), ("v", "F32", P)],
        ),
        // The norm of a projected parameter is missing; a parameter that falls back to AdamW has none.
        (
            "apollo",
            vec![("m", "F32", &[4, 8][..]), ("v", "F32", &[4, 8])],
        ),
    ] {
        assert_eq!(
            wrong(kind, P, &state),
            [finding(words, "p")],
            "{kind} {state:?}"
        );
    }
    let of_vector: [Entry<'_>; 3] = [("m", "F32", &[5]), ("v", "F32", &[5]), ("norm", "F32", &[])];
    assert_eq!(wrong("apollo", &[5], &of_vector), [finding(words, "p")]);
    let refusal = {
        let (tensors, groups) = one("adamw", P, &[m, ("row", "F32", &[6])]);
        refusals(check(&tensors, &groups)).remove(0)
    };
    let words = (refusal.expected.as_deref(), refusal.found.as_deref());
    assert_eq!(
        words,
        (Some("[m, v], perhaps [master, step]"), Some("[m, row]"))
    );
}

#[test]
fn portable_checks_refuse_shapes_and_dtypes() {
    let shape = "state.group.state-shape";
    let norm: Entry<'_> = ("norm", "F32", &[]);
    for (kind, state, subject) in [
        ("sgd", vec![("momentum", "F32", &[6, 8][..])], "p:momentum"),
        ("sgd", vec![("step", "U64", &[1][..])], "p:step"),
        ("muon", vec![("step", "U64", &[1][..])], "p:step"),
        (
            "adamw",
            vec![("m", "F32", P), ("v", "F32", P), ("master", "F32", &[48])],
            "p:master",
        ),
        (
            "adafactor",
            vec![("row", "F32", &[2, 3][..]), ("col", "F32", &[8])],
            "p:row",
        ),
        (
            "adafactor",
            vec![("row", "F32", &[6][..]), ("col", "F32", &[6])],
            "p:col",
        ),
        // Channels are the longer side, the rank is below the shorter one, and both moments have the same rank.
        (
            "apollo",
            vec![("m", "F32", &[4, 8][..]), ("v", "F32", &[3, 8]), norm],
            "p:v",
        ),
        (
            "apollo",
            vec![
                ("m", "F32", &[4, 8][..]),
                ("v", "F32", &[4, 8]),
                ("norm", "F32", &[1]),
            ],
            "p:norm",
        ),
    ] {
        assert_eq!(
            wrong(kind, P, &state),
            [finding(shape, subject)],
            "{kind} {state:?}"
        );
    }
    let wide: [Entry<'_>; 3] = [("m", "F32", &[6, 8]), ("v", "F32", &[6, 8]), norm];
    assert_eq!(
        wrong("apollo", P, &wide),
        [finding(shape, "p:m"), finding(shape, "p:v")]
    );
    // A stated rank is the only valid one, and a rank that is too large is not a projection.
    let projected: [Entry<'_>; 3] = [("m", "F32", &[4, 8]), ("v", "F32", &[4, 8]), norm];
    let (tensors, mut groups) = one("apollo", P, &projected);
    for (rank, expected) in [
        (4.0, vec![]),
        (3.0, vec![finding(shape, "p:m"), finding(shape, "p:v")]),
        (
            6.0,
            vec![
                finding("state.group.state-words", "p"),
                finding(shape, "p:m"),
                finding(shape, "p:v"),
            ],
        ),
    ] {
        groups[0]
            .optimizer
            .hyperparameters
            .insert("rank".to_string(), rank);
        let found = if expected.is_empty() {
            check(&tensors, &groups).map(|()| vec![]).unwrap()
        } else {
            told(check(&tensors, &groups))
        };
        assert_eq!(found, expected, "rank {rank}");
    }
    let dtype = "state.group.state-dtype";
    assert_eq!(
        wrong("sgd", P, &[("momentum", "F64", P), ("step", "I64", &[])]),
        [finding(dtype, "p:momentum"), finding(dtype, "p:step")]
    );
    let factored: [Entry<'_>; 2] = [("row", "BF16", &[6]), ("col", "F16", &[8])];
    assert_eq!(
        wrong("adafactor", P, &factored),
        [finding(dtype, "p:col"), finding(dtype, "p:row")]
    );
    assert_eq!(
        wrong("sgd", P, &[("master", "BF16", P)]),
        [finding(dtype, "p:master")]
    );
}

#[test]
fn portable_checks_refuse_settings_out_of_range() {
    let (tensors, groups) = state_g();
    let ranges = [
        ("learning_rate", vec![-1e-9, f64::INFINITY], vec![0.0, 5.0]),
        ("weight_decay", vec![-0.1], vec![0.0, 0.1]),
        ("eps", vec![-1e-8, f64::NAN], vec![0.0]),
        ("beta1", vec![-0.1, 1.0], vec![0.0, 0.999]),
        ("momentum", vec![1.0], vec![0.0]),
        ("decay_rate", vec![0.0], vec![-0.8]),
        ("rank", vec![0.0, 1.5], vec![1.0]),
        ("clip_threshold", vec![0.0], vec![1.0]),
        ("growth_limit", vec![1.0, -1.0], vec![0.0, 1.01]),
        ("projected", vec![2.0], vec![0.0, 1.0]),
        ("adamw_learning_rate_scale", vec![0.0], vec![0.25]),
        ("nesterov", vec![0.5, 2.0], vec![0.0, 1.0]),
        ("unknown", vec![f64::NAN, f64::NEG_INFINITY], vec![-3.5]),
    ];
    for (name, bad, good) in ranges {
        for (value, right) in bad
            .iter()
            .map(|value| (value, false))
            .chain(good.iter().map(|value| (value, true)))
        {
            let mut groups = groups.clone();
            groups[1]
                .optimizer
                .hyperparameters
                .insert(name.to_string(), *value);
            match (check(&tensors, &groups), right) {
                (Ok(()), true) => {}
                (answer, false) => {
                    assert_eq!(
                        told(answer),
                        [finding(
                            "state.group.hyperparameter",
                            &format!("decoder.head/{name}")
                        )],
                        "{value}"
                    );
                }
                (Err(error), true) => panic!("{name} = {value}: {error}"),
            }
        }
    }
    let mut scaled = groups.clone();
    scaled[0].parameter_semantics.learning_rate_scale = -1.0;
    scaled[1].parameter_semantics.weight_decay_scale = f64::NAN;
    let code = "state.group.hyperparameter";
    assert_eq!(
        told(check(&tensors, &scaled)),
        [
            finding(code, "decoder.head/weight_decay_scale"),
            finding(code, "embedding/learning_rate_scale")
        ]
    );
    (
        scaled[0].parameter_semantics.learning_rate_scale,
        scaled[1].parameter_semantics.weight_decay_scale,
    ) = (0.0, 0.0);
    check(&tensors, &scaled).unwrap();
}

#[test]
fn portable_checks_refuse_names_that_do_not_fit() {
    let (mut tensors, mut groups) = state_g();
    let second = groups[0].group_id.clone();
    groups[1].group_id = second;
    tensors.remove("head.weight:v");
    tensors.remove("embed.weight");
    tensors.get_mut("head.weight").unwrap().role = TensorRole::Buffer;
    groups[0].members[0]
        .state
        .values_mut()
        .for_each(|key| *key = "embed.weight:step".to_string());
    assert_eq!(
        told(check(&tensors, &groups)),
        [
            finding("state.group.duplicate", "embedding"),
            finding("state.group.member-missing", "embed.weight"),
            finding("state.group.member-missing", "head.weight:v"),
            finding("state.group.role", "embed.weight:step"),
            finding("state.group.role", "head.weight"),
            finding("state.group.state-dtype", "embed.weight:step"),
            finding("state.tensor.shared", "embed.weight:step"),
            finding("state.tensor.orphan", "embed.weight:momentum"),
        ]
    );
}

#[test]
fn portable_checks_refuse_steps_out_of_range() {
    let (tensors, mut groups) = state_g();
    let answer = |groups: &[ModelStateGroupAssignment], step: u64| {
        check_groups(&tensors, groups, &|_| Some(step), "state")
    };
    groups[0].applied_steps = 7;
    answer(&groups, 7).unwrap();
    let late = refusals(answer(&groups, 8));
    assert_eq!(
        late.iter()
            .map(|one| one.subject.clone().unwrap())
            .collect::<Vec<_>>(),
        ["embed.weight:step", "head.weight:step"]
    );
    assert_eq!(
        late[1].expected.as_deref(),
        Some("at most 7, the applied steps of decoder.head")
    );
    for group in &mut groups {
        group.applied_steps = (1 << 53) - 1;
    }
    answer(&groups, (1 << 53) - 1).unwrap();
    assert!(answer(&groups, 1 << 53).is_err());
    groups[0].applied_steps = 1 << 53;
    assert_eq!(
        told(answer(&groups, 7)),
        [finding("state.step.range", "embedding")]
    );
}

/// Line 25 of ./README.md: each fault with its code, all in one answer, for every order of the groups.
#[test]
fn portable_checks_tell_every_fault_at_once() {
    let (mut tensors, mut groups) = state_g();
    tensors.get_mut("head.weight:m").unwrap().shape = vec![3];
    let orphan = ModelStateTensorManifest::of_name("gone:v", "F32", &[2]);
    tensors.insert("gone:v".to_string(), orphan);
    let foreign = ModelStateTensorManifest::of_name("embed.weight:norm", "F32", &[]);
    tensors.insert("embed.weight:norm".to_string(), foreign);
    let norm = serde_json::from_value(json!("norm")).unwrap();
    groups[0].members[0]
        .state
        .insert(norm, "embed.weight:norm".to_string());
    groups[0]
        .optimizer
        .hyperparameters
        .insert("momentum".to_string(), f64::NAN);
    let mut second = groups[1].clone();
    second.group_id = "again".to_string();
    second.members[0].state.clear();
    groups.push(second);
    let step = |key: &str| (key == "head.weight:step").then_some(1 << 53);
    let expected = [
        finding("state.group.state-words", "embed.weight"),
        finding("state.group.state-shape", "head.weight:m"),
        finding("state.group.hyperparameter", "embedding/momentum"),
        finding("state.tensor.shared", "head.weight"),
        finding("state.tensor.orphan", "gone:v"),
        finding("state.step.range", "head.weight:step"),
    ];
    assert_eq!(
        told(check_groups(&tensors, &groups, &step, "state")),
        expected
    );
    let shared = refusals(check_groups(&tensors, &groups, &step, "state")).swap_remove(3);
    assert_eq!(shared.found.as_deref(), Some("decoder.head, again"));
    groups.reverse();
    assert_eq!(
        told(check_groups(&tensors, &groups, &step, "state")),
        expected
    );
}

#[test]
fn portable_checks_say_what_cannot_be_trained() {
    let (_, groups) = one("lamb", P, &[STEP, ("m", "F32", P), ("v", "F32", P)]);
    assert_eq!(
        told(check_trainable(&groups, "state")),
        [finding("state.group.kind", "g")]
    );
    let (_, groups) = one(
        "adamw",
        P,
        &[("m", "F32", P), ("v", "F32", P), ("master", "F32", P)],
    );
    assert_eq!(
        told(check_trainable(&groups, "state")),
        [
            finding("state.group.state-words", "p"),
            finding("state.group.kind", "p:master")
        ]
    );
    for kind in ["adafactor", "adamw", "apollo", "sgd"] {
        check_trainable(&one(kind, P, &[]).1, "state").unwrap();
        check_trainable(&one(kind, P, &[STEP]).1, "state").unwrap();
    }
}

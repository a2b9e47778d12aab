use super::*;

fn likely(id: usize, logit: f64, prob: f64) -> Likely {
    Likely { id, logit, prob }
}

fn row() -> Vec<f32> {
    vec![1.0, 4.0, 3.0, 2.0]
}

fn want() -> Vec<Likely> {
    let sum: f64 = row().iter().map(|x| f64::from(*x).exp()).sum();
    vec![
        likely(1, 4.0, 4f64.exp() / sum),
        likely(2, 3.0, 3f64.exp() / sum),
    ]
}

#[test]
fn top_accepts_the_same_row_and_refuses_a_wrong_logit() {
    let mut verdict = Verdict::default();
    verdict.top(&row(), &want());
    assert!(verdict.ok(), "{:?}", verdict.worst());
    let mut off = row();
    off[2] += 1e-3;
    let mut verdict = Verdict::default();
    verdict.top(&off, &want());
    assert!(!verdict.ok());
    assert_eq!(
        verdict.worst().map(|m| m.name.as_str()),
        Some("top5[1].logit")
    );
}

#[test]
fn top_refuses_an_intruder_and_a_swap_but_not_a_tie() {
    let mut row = row();
    row[0] = 3.5;
    let mut verdict = Verdict::default();
    verdict.top(&row, &want());
    assert!(verdict.failures().any(|m| m.name == "order"));
    let near = [likely(1, 4.0, 0.0), likely(2, 3.995, 0.0)];
    let mut verdict = Verdict::default();
    verdict.top(&[0.0, 3.995, 4.0, 0.0], &near);
    assert!(!verdict.failures().any(|m| m.name == "order"));
}

#[test]
fn nan_fails_every_measure() {
    let mut verdict = Verdict::default();
    verdict.near("a", f64::NAN, 1.0, 1.0);
    verdict.relative("b", f64::NAN, 1.0, 1.0);
    verdict.top(&[f32::NAN; 4], &want());
    assert!(verdict.failures().count() >= 6);
    assert!(!verdict.ok());
}

#[test]
fn a_verdict_without_measures_is_no_success() {
    assert!(!Verdict::default().ok());
}

#[test]
fn equal_counts_places_and_length() {
    let mut verdict = Verdict::default();
    verdict.equal("ids", &[1, 2, 3, 4], &[1, 9, 3]);
    assert_eq!(verdict.worst().map(|m| m.error), Some(2.0));
}

#[test]
fn gradients_compare_norms_samples_and_the_number_of_parameters() {
    let want: GradExpect = serde_json::from_str(
        r#"{"loss": 1.0, "norm": 5.0, "norms": {"w": 5.0}, "samples": {"w": [3.0, 4.0]}}"#,
    )
    .unwrap();
    let check = |values: &'static [f32], names| {
        let mut verdict = Verdict::default();
        verdict.gradients(&want, |name| (name == "w").then_some(values), names);
        verdict.ok()
    };
    assert!(check(&[3.0, 4.0], 1));
    assert!(!check(&[4.0, 3.0], 1), "norm alone must not pass");
    assert!(!check(&[3.0, 4.01], 1));
    assert!(!check(&[3.0, 4.0], 2));
}

#[test]
fn cross_entropy_is_minus_log_probability() {
    let p = 3f64.exp() / row().iter().map(|x| f64::from(*x).exp()).sum::<f64>();
    assert!((cross_entropy(&row(), 2) + p.ln()).abs() < 1e-12);
    assert!(cross_entropy(&row(), 4).is_nan());
}

#[test]
fn cases_parse_by_kind() {
    let json = r#"{"id": "a", "kind": "ce", "model": "m", "tokenizer": "t", "text": "x", "start": 0, "count": 3,
        "expect": {"first_ids": [1], "mean": 1.0, "first": 2.0, "last": 3.0}}"#;
    let case: Case = serde_json::from_str(json).unwrap();
    assert!(matches!(case.task, Task::Ce { count: 3, .. }));
    assert!(serde_json::from_str::<Case>(&json.replace("\"ce\"", "\"zz\"")).is_err());
}

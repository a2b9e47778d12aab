//! Plans of imports: the bytes that are read, and when.

use serde_json::json;
use tabtune::portable::open_safetensors;
use tabtune::state::{
    OpenedState, PortableModelBundleImportPlan, PortableModelImportRequest, PortableModelStateDict,
};
use tabtune_tests::block_on;

use super::state_g::{Counting, assert_same, state_g, told, written};

fn request(policy: &str) -> PortableModelImportRequest {
    let request = json!({
        "selection": { "include_patterns": ["head.*"] },
        "key_remap": { "source_to_target": { "head.weight": "output.weight" }, "rename_state": true },
        "materialization_policy": policy,
    });
    serde_json::from_value(request).unwrap()
}

/// Returns state G as two files that record the bytes that are read.
fn files() -> [std::rc::Rc<Counting>; 2] {
    let files = written(block_on(state_g().export_safetensors(&state_g().manifest())).unwrap());
    <[_; 2]>::try_from(files)
        .unwrap()
        .map(|(name, bytes)| Counting::new(&name, bytes))
}

fn opened(files: &[std::rc::Rc<Counting>; 2]) -> OpenedState {
    open_safetensors(vec![files[0].clone(), files[1].clone()]).unwrap()
}

fn plan(opened: OpenedState, request: PortableModelImportRequest) -> PortableModelBundleImportPlan {
    block_on(PortableModelBundleImportPlan::new(opened, request)).unwrap()
}

fn selected(policy: &str) -> PortableModelStateDict {
    state_g()
        .select_and_remap(&request(policy))
        .unwrap()
        .state_dict
}

/// Lines 8, 14 and 31 of ./README.md.
#[test]
fn a_deferred_plan_reads_when_it_is_asked() {
    let files = files();
    let plan = plan(opened(&files), request("deferred"));
    for file in &files {
        let (reads, header) = (
            file.take(),
            u64::from_le_bytes(bytes(file, 0, 8).try_into().unwrap()),
        );
        file.take();
        assert_eq!(reads, [(0, 8), (8, 8 + header)], "exactly the header");
    }
    assert_eq!((plan.tensor_count(), plan.deferred_tensor_count()), (4, 4));
    let lines = plan.stable_signature_lines();
    assert_eq!(lines[..2], ["source_format=safetensors", "policy=deferred"]);
    assert_eq!(lines[2], format!("plan_digest={}", plan.plan_digest));
    assert_eq!(lines[3], "output.weight|source=head.weight|deferred=true");
    let entry = &plan.entries["output.weight"];
    let (tensor, values) = block_on(plan.materialize_tensor("output.weight")).unwrap();
    assert_eq!(
        (&entry.file[..], &entry.dtype[..], &entry.shape[..]),
        ("model.safetensors", "F32", &[2][..])
    );
    assert_eq!(tensor.state_key, "output.weight");
    assert_eq!(
        values[..],
        [0.5f32.to_le_bytes(), (-0.5f32).to_le_bytes()].concat()
    );
    assert_eq!(
        files[0].take(),
        [(entry.begin, entry.end)],
        "its span, once"
    );
    assert_eq!(files[1].take(), []);
    assert_eq!(
        told(block_on(plan.materialize_tensor("head.weight"))),
        [("plan.tensor.unknown", "head.weight".to_string())]
    );

    let bundle = block_on(plan.materialize_bundle()).unwrap();
    let mut reads: Vec<_> = files.iter().flat_map(|file| file.take()).collect();
    let mut spans: Vec<_> = plan
        .entries
        .values()
        .map(|entry| (entry.begin, entry.end))
        .collect();
    reads.sort_unstable();
    spans.sort_unstable();
    assert_eq!(reads, spans, "every admitted span once");
    assert_eq!(bundle.state_dict.groups(), selected("deferred").groups());
    assert_eq!(
        block_on(bundle.state_dict.digests()).unwrap(),
        block_on(selected("deferred").digests()).unwrap()
    );
    assert!(
        files.iter().all(|file| file.take().is_empty()),
        "its digests are known"
    );
    assert_same(&bundle.state_dict, &selected("deferred"));
}

fn bytes(file: &Counting, from: usize, to: usize) -> Vec<u8> {
    use tabtune::formats::ByteSource;
    let mut bytes = vec![0; to - from];
    file.inner.read_at(from as u64, &mut bytes).unwrap();
    bytes
}

/// Line 14 of ./README.md: the other policy gives the same.
#[test]
fn an_eager_plan_holds_the_same() {
    let files = files();
    let eager = plan(opened(&files), request("eager"));
    files.iter().for_each(|file| drop(file.take()));
    assert_eq!(eager.deferred_tensor_count(), 0);
    let (_, values) = block_on(eager.materialize_tensor("output.weight:step")).unwrap();
    assert_eq!(values[..], 7u64.to_le_bytes());
    assert_same(
        &block_on(eager.materialize_bundle()).unwrap().state_dict,
        &selected("eager"),
    );
    assert!(
        files.iter().all(|file| file.take().is_empty()),
        "nothing is read again"
    );
    let deferred = plan(opened(&files), request("deferred"));
    assert_ne!(eager.plan_digest, deferred.plan_digest);
    assert_eq!(eager.manifest, deferred.manifest);
    assert_eq!(
        eager.manifest.tensors.keys().next().unwrap(),
        "output.weight"
    );
}

#[test]
fn equal_requests_have_equal_plans() {
    let ordered = |patterns: &[&str]| {
        let request = json!({ "selection": { "include_patterns": patterns }, "materialization_policy": "deferred" });
        plan(opened(&files()), serde_json::from_value(request).unwrap()).plan_digest
    };
    assert_eq!(
        ordered(&["head.*", "embed.*"]),
        ordered(&["embed.*", "head.*"])
    );
    assert_ne!(ordered(&["head.*", "embed.*"]), ordered(&["head.*"]));
}

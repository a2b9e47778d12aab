//! Plans of imports: the bytes that are read, and when.

use serde_json::json;
use tabtune::formats::ByteSource;
use tabtune::portable::{PlanReport, PlannedTensor, SharedFiles, open_safetensors, plan_files};
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

/// A file of zeros after its header, of which no byte is in memory, that counts the bytes that are read.
struct Sparse {
    name: String,
    header: Vec<u8>,
    len: u64,
    read: std::cell::Cell<u64>,
}

impl ByteSource for Sparse {
    fn name(&self) -> &str {
        &self.name
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tabtune::Result<()> {
        assert!(offset + buf.len() as u64 <= self.len);
        self.read.set(self.read.get() + buf.len() as u64);
        buf.fill(0);
        let from = usize::try_from(offset).unwrap().min(self.header.len());
        let known = &self.header[from..];
        let count = known.len().min(buf.len());
        buf[..count].copy_from_slice(&known[..count]);
        Ok(())
    }
}

/// Returns a tied Llama of more than 20 GB, with a second head, whose weights are zeros.
fn large() -> [std::rc::Rc<Sparse>; 2] {
    let (hidden, inner, rows, layers) = (4096, 11008, 128_256, 24);
    let config = json!({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": 32, "num_key_value_heads": 32,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "vocab_size": rows,
    });
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_string(), vec![rows, hidden]),
        ("lm_head.weight".to_string(), vec![rows, hidden]),
        ("model.norm.weight".to_string(), vec![hidden]),
    ];
    for layer in 0..layers {
        let mut add = |name: &str, shape: &[u64]| {
            shapes.push((
                format!("model.layers.{layer}.{name}.weight"),
                shape.to_vec(),
            ))
        };
        for name in ["q_proj", "k_proj", "v_proj", "o_proj"] {
            add(&format!("self_attn.{name}"), &[hidden, hidden]);
        }
        add("mlp.gate_proj", &[inner, hidden]);
        add("mlp.up_proj", &[inner, hidden]);
        add("mlp.down_proj", &[hidden, inner]);
        add("input_layernorm", &[hidden]);
        add("post_attention_layernorm", &[hidden]);
    }
    let (mut header, mut at) = (serde_json::Map::new(), 0);
    for (name, shape) in shapes {
        let end = at + 4 * shape.iter().product::<u64>();
        header.insert(
            name,
            json!({ "dtype": "F32", "shape": shape, "data_offsets": [at, end] }),
        );
        at = end;
    }
    let text = serde_json::Value::Object(header).to_string();
    let header = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let file = |name: &str, header: Vec<u8>, payload: u64| {
        std::rc::Rc::new(Sparse {
            name: name.into(),
            len: header.len() as u64 + payload,
            header,
            read: Default::default(),
        })
    };
    [
        file("config.json", config.to_string().into_bytes(), 0),
        file("model.safetensors", header, at),
    ]
}

/// Line 31 of ./README.md: a plan reads headers, and a tensor its own bytes, however large the folder.
#[test]
fn a_plan_of_a_large_folder_reads_little() {
    let files = large();
    let read = || files.iter().map(|file| file.read.take()).sum::<u64>();
    assert!(files[1].len > 20_000_000_000, "{}", files[1].len);
    let shared: SharedFiles = vec![files[0].clone(), files[1].clone()];
    let plan = block_on(plan_files(&shared, PortableModelImportRequest::default())).unwrap();
    let of_plan = read();
    assert!(of_plan < 1_000_000, "{of_plan} bytes");
    let report = PlanReport::of(&plan);
    assert_eq!(
        report.entries.len(),
        24 * 9 + 2,
        "the second head is left out"
    );
    assert!(report.entries.iter().all(|entry| entry.deferred));
    assert_eq!(report.plan_digest, plan.plan_digest.to_string());
    let name = "model.layers.7.mlp.down_proj.weight";
    let entry = report.entries.iter().find(|entry| entry.name == name);
    let entry = entry.unwrap();
    let (tensor, bytes) = block_on(plan.materialize_tensor(name)).unwrap();
    assert_eq!(
        (tensor.shape, bytes.len()),
        (vec![4096, 11008], 4096 * 11008 * 4)
    );
    assert_eq!(read(), entry.end - entry.begin, "its bytes and no others");
}

/// The plan of a checkpoint does not read its tensors, and names its groups.
#[test]
fn a_plan_of_a_checkpoint_reads_its_documents() {
    let folder = format!("{}/golden/checkpoints/v1", env!("CARGO_MANIFEST_DIR"));
    let names = [
        "checkpoint.json",
        "config.json",
        "model.safetensors",
        "optimizer.safetensors",
    ];
    let files =
        names.map(|name| Counting::new(name, std::fs::read(format!("{folder}/{name}")).unwrap()));
    let shared: SharedFiles = files
        .iter()
        .map(|file| file.clone() as std::rc::Rc<dyn ByteSource>)
        .collect();
    let plan = block_on(plan_files(&shared, PortableModelImportRequest::default())).unwrap();
    let report = PlanReport::of(&plan);
    assert_eq!(report.source_format, "checkpoint");
    assert!(!report.groups.is_empty());
    // The number of steps of each parameter is compared with its group.
    let is_read = |entry: &&PlannedTensor| !entry.name.ends_with(":step");
    for entry in report.entries.iter().filter(is_read) {
        let file = files.iter().find(|file| file.inner.name() == entry.file);
        let reads = file.unwrap().reads.borrow().clone();
        let apart = |&(begin, end): &(u64, u64)| end <= entry.begin || begin >= entry.end;
        assert!(reads.iter().all(apart), "{} in {reads:?}", entry.name);
    }
}

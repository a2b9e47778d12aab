//! GGUF files: names, layouts, configuration, tokenizer.

use tabtune::bundle::{Bundle, open_bundle};
use tabtune::config::{Architecture, RopeScaling};
use tabtune::state::SourceFormat;

use super::files::{Meta, Tensor, file, gguf, ramp};

fn llama(extra: Vec<(&'static str, Meta)>, tensors: &[Tensor]) -> tabtune::Result<Bundle> {
    let mut metadata = vec![
        ("general.architecture", Meta::Text("llama")),
        ("llama.context_length", Meta::U32(16)),
        ("llama.embedding_length", Meta::U32(8)),
        ("llama.block_count", Meta::U32(1)),
        ("llama.feed_forward_length", Meta::U32(4)),
        ("llama.attention.head_count", Meta::U32(2)),
        ("llama.attention.head_count_kv", Meta::U32(1)),
        ("llama.attention.layer_norm_rms_epsilon", Meta::F32(1e-5)),
    ];
    metadata.retain(|(key, _)| !extra.iter().any(|(other, _)| other == key));
    metadata.extend(extra);
    open_bundle(vec![file("m.gguf", gguf(&metadata, tensors))])
}

fn embedding() -> Tensor {
    ("token_embd.weight", vec![3, 8], ramp(24, 0.0))
}

#[test]
fn llama_rows_of_q_and_k_are_put_back() {
    let q = ("blk.0.attn_q.weight", vec![8, 8], ramp(64, 0.0));
    let k = ("blk.0.attn_k.weight", vec![4, 8], ramp(32, 0.0));
    let bundle = llama(vec![], &[embedding(), q, k]).unwrap();
    assert_eq!(bundle.source_format, SourceFormat::Gguf);
    assert!(bundle.config.tie_word_embeddings);
    assert_eq!(
        (
            bundle.config.norm_eps,
            bundle.config.vocab_size,
            bundle.config.head_dim
        ),
        (1e-5, 3, 4)
    );
    let first = |name: &str| -> Vec<f32> {
        bundle
            .read_f32(name)
            .unwrap()
            .chunks(8)
            .map(|row| row[0] / 8.0)
            .collect()
    };
    // Rows of a head of four in the file: (0, 0'), (1, 1'); in Hugging Face's order: 0, 1, 0', 1'.
    assert_eq!(
        first("model.layers.0.self_attn.q_proj.weight"),
        [0., 2., 1., 3., 4., 6., 5., 7.]
    );
    assert_eq!(
        first("model.layers.0.self_attn.k_proj.weight"),
        [0., 2., 1., 3.]
    );
}

#[test]
fn equal_head_is_tied_and_another_is_kept() {
    let tied = llama(
        vec![],
        &[embedding(), ("output.weight", vec![3, 8], ramp(24, 0.0))],
    )
    .unwrap();
    assert!(tied.config.tie_word_embeddings && tied.names() == ["model.embed_tokens.weight"]);
    let own = llama(
        vec![],
        &[embedding(), ("output.weight", vec![3, 8], ramp(24, 1.0))],
    )
    .unwrap();
    assert!(
        !own.config.tie_word_embeddings
            && own.names() == ["lm_head.weight", "model.embed_tokens.weight"]
    );
}

#[test]
fn gpt2_matrices_are_transposed_back() {
    let metadata = [
        ("general.architecture", Meta::Text("gpt2")),
        ("gpt2.context_length", Meta::U32(16)),
        ("gpt2.embedding_length", Meta::U32(2)),
        ("gpt2.block_count", Meta::U32(1)),
        ("gpt2.feed_forward_length", Meta::U32(8)),
        ("gpt2.attention.head_count", Meta::U32(1)),
        ("gpt2.attention.layer_norm_epsilon", Meta::F32(1e-5)),
    ];
    let tensors = [
        ("token_embd.weight", vec![3, 2], ramp(6, 0.0)),
        ("blk.0.attn_qkv.weight", vec![6, 2], ramp(12, 0.0)),
    ];
    let bundle = open_bundle(vec![file("m.gguf", gguf(&metadata, &tensors))]).unwrap();
    assert_eq!(bundle.config.architecture, Architecture::Gpt2);
    let name = "transformer.h.0.attn.c_attn.weight";
    assert_eq!(bundle.shape(name), Some(vec![2, 6]));
    assert_eq!(
        bundle.read_f32(name).unwrap(),
        [0., 2., 4., 6., 8., 10., 1., 3., 5., 7., 9., 11.]
    );
}

#[test]
fn what_the_metadata_asks_for_and_is_not_built_is_refused() {
    let code = |extra, tensors: &[Tensor]| llama(extra, tensors).unwrap_err().code();
    assert_eq!(
        code(vec![("llama.expert_count", Meta::U32(8))], &[embedding()]),
        "model.config.unsupported"
    );
    assert_eq!(
        code(
            vec![("llama.rope.scaling.type", Meta::Text("longrope"))],
            &[embedding()]
        ),
        "model.config.unsupported"
    );
    assert_eq!(
        code(
            vec![("llama.attention.sliding_window", Meta::U32(4))],
            &[embedding()]
        ),
        "model.config.unsupported"
    );
    assert_eq!(
        code(
            vec![("llama.rope.dimension_count", Meta::U32(2))],
            &[embedding()]
        ),
        "model.config.unsupported"
    );
    assert_eq!(
        code(
            vec![("llama.rope.scaling.attn_factor", Meta::F32(1.5))],
            &[embedding()]
        ),
        "model.config.unsupported"
    );
    assert_eq!(
        code(
            vec![("llama.attention.causal", Meta::Bool(false))],
            &[embedding()]
        ),
        "model.config.unsupported"
    );
    assert_eq!(code(vec![], &[]), "model.tensor.missing");
    assert_eq!(
        code(vec![("llama.vocab_size", Meta::U32(9))], &[embedding()]),
        "model.vocab.rows"
    );
    let other = gguf(&[("general.architecture", Meta::Text("mamba"))], &[]);
    assert_eq!(
        open_bundle(vec![file("m.gguf", other)]).unwrap_err().code(),
        "model.arch.unsupported"
    );
}

/// llama.cpp interprets a factor without a type, and the older key, as linear scaling.
#[test]
fn factors_without_a_type_scale_linearly() {
    let scaling = |extra| llama(extra, &[embedding()]).unwrap().config.rope_scaling;
    let linear = RopeScaling::Linear { factor: 2.0 };
    assert_eq!(
        scaling(vec![("llama.rope.scaling.factor", Meta::F32(2.0))]),
        linear
    );
    assert_eq!(
        scaling(vec![("llama.rope.scale_linear", Meta::F32(2.0))]),
        linear
    );
    let none = vec![
        ("llama.rope.scaling.type", Meta::Text("none")),
        ("llama.rope.scaling.factor", Meta::F32(2.0)),
    ];
    assert_eq!(scaling(none), RopeScaling::Default);
    assert_eq!(
        scaling(vec![("llama.rope.scaling.factor", Meta::F32(1.0))]),
        RopeScaling::Default
    );
    assert_eq!(
        scaling(vec![
            ("llama.rope.scaling.attn_factor", Meta::F32(1.0)),
            ("llama.attention.causal", Meta::Bool(true))
        ]),
        RopeScaling::Default
    );
}

/// Makes a whole model of one block: hidden size 8, two heads of four, one key head.
fn one_block(family: &'static str, extra: &[(&'static str, usize)]) -> tabtune::Result<Bundle> {
    let numbers = [
        ("context_length", 16),
        ("embedding_length", 8),
        ("block_count", 1),
        ("feed_forward_length", 4),
    ];
    let heads = [("attention.head_count", 2), ("attention.head_count_kv", 1)];
    let keys: Vec<(String, u32)> = numbers
        .iter()
        .chain(&heads)
        .map(|(key, n)| (format!("{family}.{key}"), *n))
        .collect();
    let eps = format!("{family}.attention.layer_norm_rms_epsilon");
    let mut metadata = vec![
        ("general.architecture", Meta::Text(family)),
        (eps.as_str(), Meta::F32(1e-5)),
    ];
    metadata.extend(keys.iter().map(|(key, n)| (key.as_str(), Meta::U32(*n))));
    let matrices = [
        ("attn_q", 8, 8),
        ("attn_k", 4, 8),
        ("attn_v", 4, 8),
        ("attn_output", 8, 8),
    ];
    let matrices =
        matrices
            .into_iter()
            .chain([("ffn_gate", 4, 8), ("ffn_up", 4, 8), ("ffn_down", 8, 4)]);
    let mut tensors = vec![embedding(), ("output_norm.weight", vec![8], ramp(8, 1.0))];
    let name = |part: &str| -> &'static str { format!("blk.0.{part}").leak() };
    tensors.extend(matrices.map(|(part, out, inner)| {
        (
            name(&format!("{part}.weight")),
            vec![out, inner],
            ramp(out * inner, 0.0),
        )
    }));
    tensors.extend(
        [("attn_norm.weight", 8), ("ffn_norm.weight", 8)]
            .iter()
            .chain(extra)
            .map(|(part, n)| (name(part), vec![*n], ramp(*n, 1.0))),
    );
    tabtune::model::open_model(vec![file("m.gguf", gguf(&metadata, &tensors))])
}

#[test]
fn biases_of_q_k_and_v_belong_to_qwen2_and_norms_to_qwen3() {
    let biases = [("attn_q.bias", 8), ("attn_k.bias", 4), ("attn_v.bias", 4)];
    let norms = [("attn_q_norm.weight", 4), ("attn_k_norm.weight", 4)];
    let config = |family, extra: &[_]| {
        one_block(family, extra).map(|bundle| (bundle.config.attention_bias, bundle.config.qk_norm))
    };
    assert_eq!(config("llama", &[]).unwrap(), (false, false));
    assert_eq!(config("llama", &biases).unwrap(), (true, false));
    assert_eq!(config("qwen2", &biases).unwrap(), (true, false));
    assert_eq!(config("qwen3", &norms).unwrap(), (false, true));
    // No Hugging Face family has both, so such a model could not be written back.
    for (family, first) in [
        ("qwen3", "self_attn.k_proj.bias"),
        ("qwen2", "self_attn.k_norm.weight"),
        ("llama", "self_attn.k_norm.weight"),
    ] {
        let Err(tabtune::Error::Refused(list)) = one_block(family, &[&biases[..], &norms].concat())
        else {
            panic!("{family}: not refused")
        };
        assert!(
            list.iter()
                .all(|refusal| refusal.code == "model.tensor.unexpected"),
            "{family}: {list:?}"
        );
        assert_eq!(
            list[0].subject.as_deref(),
            Some(format!("model.layers.0.{first}").as_str()),
            "{family}"
        );
        assert_eq!(
            list.len(),
            if family == "qwen3" { 3 } else { 2 },
            "{family}"
        );
    }
}

/// Returns the frequency factors of Llama 3.1 for head_dim 16, base 10,000, original context 8,192.
fn llama3_factors(original: f64) -> Vec<f32> {
    let factor = |j: i32| {
        let wavelength = 2.0 * std::f64::consts::PI * 10_000f64.powf(f64::from(2 * j) / 16.0);
        let (low, high, stretch) = (original, original / 4.0, 8.0);
        if wavelength < high {
            1.0
        } else if wavelength > low {
            stretch
        } else {
            let smooth = (original / wavelength - 1.0) / (4.0 - 1.0);
            1.0 / ((1.0 - smooth) / stretch + smooth)
        }
    };
    (0..8).map(|j| factor(j) as f32).collect()
}

#[test]
fn frequency_factors_of_llama3_are_recognised() {
    let metadata = || {
        vec![
            ("llama.attention.key_length", Meta::U32(16)),
            ("llama.rope.freq_base", Meta::F32(10_000.0)),
        ]
    };
    let factors = ("rope_freqs.weight", vec![8], llama3_factors(8192.0));
    let bundle = llama(metadata(), &[embedding(), factors]).unwrap();
    let expected = tabtune::config::RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 8192,
    };
    assert_eq!(bundle.config.rope_scaling, expected);
    assert_eq!(bundle.names(), ["model.embed_tokens.weight"]);
    let odd = ("rope_freqs.weight", vec![8], ramp(8, 1.0));
    let ones = ("rope_freqs.weight", vec![8], vec![1.0; 8]);
    assert_eq!(
        llama(metadata(), &[embedding(), ones])
            .unwrap()
            .config
            .rope_scaling,
        RopeScaling::Default
    );
    assert_eq!(
        llama(metadata(), &[embedding(), odd]).unwrap_err().code(),
        "model.config.unsupported"
    );
}

#[test]
fn feed_forward_lengths_may_be_a_list_of_one_number() {
    let lengths = |list: &[i32]| {
        llama(
            vec![("llama.feed_forward_length", Meta::I32s(list.to_vec()))],
            &[embedding()],
        )
    };
    assert_eq!(lengths(&[4, 4]).unwrap().config.intermediate_size, 4);
    assert_eq!(
        lengths(&[4, 5]).unwrap_err().code(),
        "model.config.unsupported"
    );
}

#[test]
fn sentence_piece_vocabulary_becomes_a_tokenizer() {
    let tokens = ["<unk>", "▁", "b"].map(String::from).to_vec();
    let metadata = vec![
        ("tokenizer.ggml.model", Meta::Text("llama")),
        ("tokenizer.ggml.tokens", Meta::Texts(tokens)),
        ("tokenizer.ggml.scores", Meta::F32s(vec![0.0, -1.0, -2.0])),
        ("tokenizer.ggml.token_type", Meta::I32s(vec![2, 1, 1])),
        ("tokenizer.ggml.unknown_token_id", Meta::U32(0)),
        ("tokenizer.ggml.eos_token_id", Meta::U32(2)),
    ];
    let bundle = llama(metadata, &[embedding()]).unwrap();
    let tokenizer = bundle.tokenizer.unwrap();
    assert_eq!(
        (tokenizer.vocab_size(), tokenizer.eos()),
        (3, [2].as_slice())
    );
    let strange = vec![
        ("tokenizer.ggml.model", Meta::Text("gpt2")),
        ("tokenizer.ggml.pre", Meta::Text("unheard-of")),
        (
            "tokenizer.ggml.tokens",
            Meta::Texts(vec!["a".into(), "b".into()]),
        ),
        ("tokenizer.ggml.merges", Meta::Texts(vec![])),
    ];
    let strange = llama(strange, &[embedding()]).unwrap();
    assert!(
        strange.tokenizer.is_none() && strange.warnings[0].code == "tokenizer.model.unsupported"
    );
}

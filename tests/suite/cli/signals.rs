//! Signals that arrive while an output is written.
#![cfg(unix)]

use std::fs;
use std::io::Read;
use std::process::Stdio;

use super::*;

/// Makes a model of 61 MB, which takes a while to encode.
fn large(place: &Path) -> String {
    let config = json!({"model_type": "llama", "vocab_size": 60_000, "hidden_size": 256, "intermediate_size": 4, "num_hidden_layers": 1,
        "num_attention_heads": 4, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": true});
    let layer = |name: &str| format!("model.layers.0.{name}.weight");
    let mut shapes = vec![("model.embed_tokens.weight".to_owned(), vec![60_000, 256]), ("model.norm.weight".to_owned(), vec![256])];
    shapes.extend(["input_layernorm", "post_attention_layernorm"].map(|name| (layer(name), vec![256])));
    shapes.extend(["q", "k", "v", "o"].map(|name| (layer(&format!("self_attn.{name}_proj")), vec![256, 256])));
    shapes.extend(["gate", "up"].map(|name| (layer(&format!("mlp.{name}_proj")), vec![4, 256])));
    shapes.push((layer("mlp.down_proj"), vec![256, 4]));
    let zeros = vec![0; 60_000 * 256 * 4];
    let view = |shape: &Vec<usize>| {
        let bytes = &zeros[..4 * shape.iter().product::<usize>()];
        safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap()
    };
    let tensors: Vec<_> = shapes.iter().map(|(name, shape)| (name, view(shape))).collect();
    write(place, "config.json", config.to_string());
    write(place, "model.safetensors", safetensors::serialize(tensors, None).unwrap());
    text(place)
}

#[test]
fn a_signal_leaves_nothing_of_an_output() {
    let [model, place] = ["ends-large", "ends-outputs"].map(folder);
    let model = large(&model);
    for (to, asked) in [("m.gguf", &["--format", "gguf", "--type", "q4_k_m"][..]), ("m", &["--dtype", "bf16"])] {
        let to = text(&place.join(to));
        let convert = [&["convert", "--model", &model, "--to", &to, "--json"], asked].concat();
        let mut child = Command::new(binary()).args(convert).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let begun = |folder: &Path| {
            // Locations are tried out with files of such names as well.
            let entries = fs::read_dir(folder).map(|all| all.map(Result::unwrap).collect::<Vec<_>>());
            entries
                .unwrap_or_default()
                .iter()
                .any(|entry| entry.path().is_dir() && entry.file_name().to_string_lossy().starts_with(".tabtune-"))
        };
        while !(begun(&place) || begun(Path::new(&to))) {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it could be ended");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        let mut told = String::new();
        child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{told}");
        assert!(told.contains("cli.ended") && told.contains("SIGTERM"), "{told}");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }
}

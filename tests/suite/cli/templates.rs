//! Chat templates of a folder: those for tools in a folder of their own, and the day that they write.

use super::*;

/// Copies a tiny model, and writes documents next to it.
fn model(place: &Path, documents: &[(&str, &str)]) -> String {
    let model = place.join("model");
    std::fs::create_dir_all(model.join("additional_chat_templates")).unwrap();
    for file in std::fs::read_dir(format!(
        "{}/golden/inputs/forms/model",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
    {
        let path = file.unwrap().path();
        std::fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    documents
        .iter()
        .for_each(|(name, text)| drop(write(&model, name, text)));
    text(&model)
}

#[test]
fn templates_for_tools_are_used_and_go_with_exports_and_checkpoints() {
    let place = folder("templates-tools");
    let tools =
        "{% for m in messages %}tools {{ tools | length }} {{ m.content }}<|im_end|>{% endfor %}";
    let named = "additional_chat_templates/tool_use.jinja";
    let of_model = model(
        &place,
        &[
            (
                "chat_template.jinja",
                "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}",
            ),
            (named, tools),
        ],
    );
    let row = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "tools": [{"type": "function"}]}"#;
    let data = write(&place, "rows.jsonl", format!("{row}\n"));
    let shown = |model: &str| {
        succeed(&["data", &data, "--model", model, "--show", "1"])
            .last()
            .clone()
    };
    let told = shown(&of_model);
    assert!(told["preview"].to_string().contains("tools 1 a"), "{told}");

    let exported = text(&place.join("exported"));
    succeed(&["convert", "--model", &of_model, "--to", &exported]);
    assert_eq!(
        std::fs::read_to_string(Path::new(&exported).join(named)).unwrap(),
        tools
    );
    assert_eq!(succeed(&["verify", &exported]).last()["ok"], true);
    assert_eq!(shown(&exported)["digest"], told["digest"]);

    let run = text(&place.join("run"));
    let fixed = [
        "--device",
        "cpu",
        "--batch-size",
        "1",
        "--seq-len",
        "64",
        "--data",
        &data,
    ];
    succeed(
        &[
            &["train", "--model", &of_model, "--steps", "1", "--out", &run],
            &fixed[..],
        ]
        .concat(),
    );
    assert_eq!(shown(&run)["digest"], told["digest"]);
    let again = text(&place.join("again"));
    succeed(&[
        "train",
        "--resume",
        &run,
        "--steps",
        "+1",
        "--override",
        "steps",
        "--data",
        &data,
        "--device",
        "cpu",
        "--out",
        &again,
    ]);
    std::fs::remove_dir_all(place).unwrap();
}

/// Two places of the earth whose clocks are 26 hours apart never have the same day.
#[test]
#[cfg(unix)]
fn the_day_is_that_of_the_local_clock() {
    let place = folder("templates-day");
    let of_model = model(
        &place,
        &[(
            "chat_template.jinja",
            "{% for m in messages %}{{ strftime_now('%d') }} {{ m.content }}<|im_end|>{% endfor %}",
        )],
    );
    let data = write(
        &place,
        "rows.jsonl",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}\n",
    );
    let shown = |zone: &str| {
        let output = Command::new(binary())
            .args(["data", &data, "--model", &of_model, "--json"])
            .env("TZ", zone)
            .output()
            .unwrap();
        assert!(output.status.success());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["digest"].clone()
    };
    assert_ne!(shown("<+14>-14"), shown("<-12>12"));
    assert_eq!(shown("<+14>-14"), shown("<+14>-14"));
    std::fs::remove_dir_all(place).unwrap();
}

//! The second checkpoint of a run, with its lowest evaluation loss.

use super::places::contents;
use super::*;

#[test]
fn the_best_is_not_kept_in_the_folder_of_the_run() {
    let place = folder("best-in-out");
    let (config, data) = tiny(&place);
    let out = text(&place.join("run"));
    let args = [
        &short(&config, &data)[..],
        &[
            "--validation-fraction",
            "0.3",
            "--eval-every",
            "2",
            "--out",
            &out,
            "--keep-best",
        ],
    ]
    .concat();
    for best in [
        out.clone(),
        text(&place.join("run/../run")),
        text(&place.join("./run")),
    ] {
        let (code, message) = refuse(&[&args[..], &[&best]].concat());
        assert!(
            code == "cli.usage"
                && message.contains("--keep-best: expected another folder than that of --to"),
            "{code}: {message}"
        );
    }
    assert!(!Path::new(&out).exists());
}

#[test]
fn the_best_of_another_run_is_not_replaced_at_a_resume() {
    let place = folder("best-of-another");
    let (config, data) = tiny(&place);
    let at = |name: &str| text(&place.join(name));
    let evaluated = [
        "--validation-fraction",
        "0.3",
        "--eval-every",
        "1",
        "--stop-at",
        "2",
    ];
    let run_of = |name: &str, config: &str, data: &str, seed: &str| {
        let (out, best) = (at(name), at(&format!("best-of-{name}")));
        let mut args = short(config, data);
        *args.last_mut().unwrap() = seed;
        succeed(
            &[
                &args[..],
                &evaluated,
                &["--out", &out, "--keep-best", &best],
            ]
            .concat(),
        );
        best
    };
    let best = run_of("run", &config, &data, "7");
    let deeper = std::fs::read_to_string(&config)
        .unwrap()
        .replace("\"num_hidden_layers\":2", "\"num_hidden_layers\":1");
    let other_data = write(&place, "other.txt", POEM.repeat(7));
    let others = [
        (
            run_of("model", &write(&place, "other.json", deeper), &data, "7"),
            "of another model",
        ),
        (run_of("seed", &config, &data, "8"), "with another seed"),
        (run_of("data", &config, &other_data, "7"), "on other data"),
    ];
    let plain = at("plain");
    succeed(
        &[
            &short(&config, &data)[..],
            &[
                "--validation-fraction",
                "0.3",
                "--stop-at",
                "2",
                "--out",
                &plain,
            ],
        ]
        .concat(),
    );
    let out = at("run");
    let resume = [
        "train",
        "--resume",
        &out,
        "--data",
        &data,
        "--device",
        "cpu",
        "--eval-every",
        "1",
        "--out",
        &out,
        "--keep-best",
    ];
    for (other, why) in others.into_iter().chain([(plain, "was not evaluated")]) {
        let before = contents(Path::new(&other));
        let answer = run(&[&resume[..], &[&other]].concat());
        let error = &answer.last()["error"];
        let message = error["message"].as_str().unwrap();
        assert!(
            answer.with("step").is_empty() && error["code"] == "output.occupied",
            "{why}: {:?}",
            answer.lines
        );
        assert!(
            message.contains("the checkpoint of another run, at step") && message.contains(why),
            "{why}: {message}"
        );
        assert!(contents(Path::new(&other)) == before, "{why}");
    }
    // The same run with other data: its losses until now are of the old ones.
    let more = ["--override", "data", "--keep-best", &best];
    let on_others = [
        "train",
        "--resume",
        &out,
        "--data",
        &other_data,
        "--device",
        "cpu",
        "--eval-every",
        "1",
    ];
    let answer = run(&[&on_others[..], &more].concat());
    assert!(
        answer.last()["error"]["message"]
            .as_str()
            .unwrap_or_default()
            .contains("on other data"),
        "{:?}",
        answer.last()
    );
    succeed(&[&resume[..], &[&best]].concat());
}

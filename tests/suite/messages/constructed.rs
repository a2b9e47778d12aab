//! Values of codes that no test raises in its own process: those of the terminal, of other processes and of hardware.

use tabtune::error::{Refusal, word};

pub fn values() -> Vec<Refusal> {
    vec![
        Refusal::filled(word!("adapter.base.widened"), ["IQ2_XXS", "", ""]),
        Refusal::filled(
            word!("adapter.rank.large"),
            ["model.layers.0.mlp.down_proj", "", ""],
        ),
        Refusal::filled(word!("adapter.untied"), ["lm_head.weight", "", ""]),
        Refusal::filled(word!("adapter.zero"), ["12 matrices", "", ""]),
        Refusal::filled(
            word!("bench.torch"),
            ["/usr/bin/python3", "", "No module named 'torch'"],
        ),
        Refusal::filled(
            word!("checkpoint.container.chunk"),
            ["", "", "model.safetensors, piece 2: its SHA-256 differs"],
        ),
        Refusal::filled(
            word!("checkpoint.container.head"),
            ["", "", "a head of 90000 bytes in a file of 512"],
        ),
        Refusal::filled(
            word!("checkpoint.container.length"),
            ["", "", "expected 4096 bytes, found 4000"],
        ),
        Refusal::filled(
            word!("checkpoint.container.magic"),
            ["", "", "its first bytes are not TABTUNE1"],
        ),
        Refusal::filled(
            word!("checkpoint.container.name"),
            ["", "", "a file name that is a path, or a duplicate"],
        ),
        Refusal::filled(
            word!("checkpoint.validation.changed"),
            ["", "5c1a…", "9e0b…"],
        ),
        Refusal::filled(word!("cli.ended"), ["SIGTERM", "", ""]),
        Refusal::filled(
            word!("cli.internal"),
            ["", "", "a library panicked; its message is on stderr"],
        ),
        Refusal::filled(
            word!("cli.json"),
            ["run.json", "", "expected an object of settings"],
        ),
        Refusal::filled(
            word!("cli.stdout"),
            ["", "", "No space left on device (os error 28)"],
        ),
        Refusal::filled(
            word!("cli.usage"),
            ["", "", "unexpected argument '--step' found"],
        ),
        Refusal::filled(
            word!("data.no-validation"),
            ["", "at least 65 tokens kept for evaluation", "12"],
        )
        .hint("raise validation_fraction, or do not evaluate"),
        Refusal::filled(
            word!("data.validation.unused"),
            ["--validation-data", "--eval-every", ""],
        ),
        Refusal::filled(
            word!("device.limit"),
            ["maxStorageBufferBindingSize", "268435456", "134217728"],
        ),
        Refusal::filled(word!("device.lost"), ["", "", "the driver was reset"]),
        Refusal::filled(
            word!("device.no-adapter"),
            ["", "", "no suitable graphics adapter found"],
        ),
        Refusal::filled(word!("kernel.parameter"), ["lr", "", ""])
            .of("scale")
            .hint("write `varying` after the struct of its parameters in kernel!"),
        Refusal::filled(
            word!("kernel.mixed-devices"),
            ["norm/rms_forward", "", "x on Cpu, w on Wgpu"],
        ),
        Refusal::filled(
            word!("optim.groups"),
            [
                "groups",
                "a pattern for every parameter (a last group * takes the rest)",
                "none for wte",
            ],
        ),
        Refusal::filled(
            word!("optim.state-mismatch"),
            ["wte:m", "F32 [8, 4]", "BF16 [8, 4]"],
        ),
        Refusal::filled(
            word!("output.occupied"),
            ["out", "", "notes.txt and 3 more"],
        ),
        Refusal::filled(word!("run.epochs"), ["", "", "20"]),
        Refusal::filled(
            word!("run.evaluation"),
            [
                "",
                "",
                "the loss is NaN; expected a finite mean over 40 tokens.",
            ],
        ),
        Refusal::filled(word!("run.locked"), ["", "", "out"]),
        Refusal::filled(
            word!("run.nothing-left"),
            ["its settings stay as they are", "10", "20"],
        ),
        Refusal::filled(word!("run.overfitting"), ["", "4.3902", "4.5114"]),
        Refusal::filled(word!("run.steps"), ["", "20", "40"]),
        Refusal::filled(
            word!("run.unprotected"),
            [
                "",
                "",
                "with gradient release, a gradient that is not finite ends the run at its last save. Set --save-every too",
            ],
        ),
        Refusal::filled(
            word!("schedule.jump"),
            [
                "",
                "",
                "step 11 has a rate of 1.000e-3, and step 10 had 5.000e-4: learning_rate",
            ],
        ),
        Refusal::filled(
            word!("schedule.misfit"),
            [
                "",
                "",
                "a cosine over 100 steps in a run of 200: the last 100 steps have a rate of 0",
            ],
        ),
        Refusal::filled(
            word!("state.model-refused"),
            [
                "config.json: tabtune has no models of the type \"mamba\".",
                "",
                "",
            ],
        ),
        Refusal::filled(word!("state.weights-alone"), ["", "", ""]),
        Refusal::filled(
            word!("sink.write"),
            [
                "out/model.safetensors",
                "",
                "No space left on device (os error 28)",
            ],
        ),
        Refusal::filled(word!("tokenizer.scores.type"), ["", "an array of f32", ""])
            .of("model.gguf"),
        Refusal::filled(word!("tokenizer.template.missing"), ["tool_use", "", ""]).of("model.gguf"),
        Refusal::filled(
            word!("tokenizer.token.byte-form"),
            ["", "<0x00> to <0xFF>", "<0xZZ>"],
        )
        .of("model.gguf"),
        Refusal::filled(word!("tokenizer.token.duplicate"), ["the", "", ""]).of("model.gguf"),
        Refusal::filled(word!("tokenizer.types.length"), ["", "256", "255"]).of("model.gguf"),
    ]
}

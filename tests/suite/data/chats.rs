//! Rows of chats: the text that their template writes, and the part of it that is learned.

use tabtune::config::{DataSettings, Form, LossOn};
use tabtune::data::{Batch, DataFile, Dataset};
use tabtune::tokenizer::Tokenizer;

use crate::tokenizer::byte_level;

pub(super) fn with_template(template: &str) -> Tokenizer {
    let mut parts = byte_level("qwen2");
    parts.chat_template = Some(template.to_owned());
    Tokenizer::from_parts(parts).unwrap()
}

/// Returns the text that the first example reads.
fn read(tokenizer: &Tokenizer, data: &Dataset) -> String {
    let batch = data
        .evaluation_batches(1, 500, None)
        .next()
        .unwrap()
        .unwrap();
    tokenizer
        .decode(&batch.inputs.iter().map(|&id| id as u32).collect::<Vec<_>>())
        .unwrap()
}

/// Returns the text of the learned tokens of each example that a row gives.
pub(super) fn taught(template: &str, row: &serde_json::Value) -> Vec<String> {
    taught_by(&with_template(template), row)
}

fn taught_by(tokenizer: &Tokenizer, row: &serde_json::Value) -> Vec<String> {
    learned_of(
        tokenizer,
        &Dataset::from_bytes(row.to_string().as_bytes(), Form::Jsonl, tokenizer, 0.0).unwrap(),
    )
}

fn learned_of(tokenizer: &Tokenizer, data: &Dataset) -> Vec<String> {
    let learned = |batch: Batch| {
        let ids: Vec<u32> = batch
            .targets
            .iter()
            .filter(|&&id| id >= 0)
            .map(|&id| id as u32)
            .collect();
        tokenizer.decode(&ids).unwrap()
    };
    data.evaluation_batches(1, 500, None)
        .map(Result::unwrap)
        .map(learned)
        .collect()
}

pub(super) const CHATML: &str = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.content is string %}{{ m.content }}{% endif %}\
    {% for c in m.tool_calls or [] %}{{ c.function | tojson }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

#[test]
fn templates_of_every_kind_teach_the_answers() {
    let said = |role: &str, content: &str| serde_json::json!({"role": role, "content": content});
    let two = serde_json::json!({"messages": [said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")]});
    assert_eq!(taught(CHATML, &two), ["b<|im_end|>d<|im_end|>"]);
    let written = serde_json::json!({"messages": two["messages"].to_string()});
    assert_eq!(
        taught(CHATML, &written),
        ["b<|im_end|>d<|im_end|>"],
        "a list that is stored as its JSON"
    );
    // With marks: exactly the text that they enclose.
    let marks = CHATML.replace(
        "{% if m.content is string %}{{ m.content }}{% endif %}",
        "{% if m.role == 'assistant' %}{% generation %}{{ m.content + '!' }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}",
    );
    assert_eq!(taught(&marks, &two), ["b!d!"]);
    // A character that is used as a mark is not lost.
    let marked = with_template(&marks);
    let odd = serde_json::json!({"messages": [said("user", "a\u{fdd0}"), said("assistant", "b")]})
        .to_string();
    let refused = Dataset::from_bytes(odd.as_bytes(), Form::Jsonl, &marked, 0.0)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("U+FDD0"), "{refused}");
    let plain =
        Dataset::from_bytes(odd.as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0).unwrap();
    assert!(read(&with_template(CHATML), &plain).contains("a\u{fdd0}<|im_end|>"));
    // A text at the very end, after the last turn only.
    let ended = format!("{CHATML}{{% if not add_generation_prompt %}}{{{{ 'END' }}}}{{% endif %}}");
    assert_eq!(taught(&ended, &two), ["b<|im_end|>d<|im_end|>"]);
    // A prompt that opens a block of thoughts, which the answers do not have.
    let opened = CHATML.replace(
        "{{ '<|im_start|>assistant\n' }}",
        "{{ '<|im_start|>assistant\n<think>\n' }}",
    );
    assert_eq!(taught(&opened, &two), ["b<|im_end|>d<|im_end|>"]);
    // A template that requires a user message, and a conversation that begins with the assistant.
    let strict = format!(
        "{{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}}{{{{ raise_exception('no') }}}}{{% endif %}}{CHATML}"
    );
    let first = serde_json::json!({"messages": [said("assistant", "hello"), said("user", "a"), said("assistant", "b")]});
    assert_eq!(taught(&strict, &first), ["hello<|im_end|>b<|im_end|>"]);
    assert_eq!(taught(CHATML, &first), ["hello<|im_end|>b<|im_end|>"]);
}

#[test]
fn what_a_row_has_reaches_the_template() {
    let user = serde_json::json!({"role": "user", "content": "a"});
    let call = serde_json::json!({"type": "function", "function": {"name": "add", "arguments": {"z": 1, "a": 1.5e20}}});
    let with = |content: serde_json::Value| {
        let mut message =
            serde_json::json!({"role": "assistant", "tool_calls": [call.clone()], "name": null});
        if content != "absent" {
            message["content"] = content;
        }
        taught(
            CHATML,
            &serde_json::json!({"messages": [user.clone(), message]}),
        )
    };
    let learned = ["{\"name\": \"add\", \"arguments\": {\"z\": 1, \"a\": 1.5e+20}}<|im_end|>"];
    for content in [
        serde_json::json!("absent"),
        serde_json::Value::Null,
        serde_json::json!(""),
    ] {
        assert_eq!(with(content.clone()), learned, "{content}");
    }
    let tools = format!(
        "{{% for t in tools or [] %}}{{{{ t.name }}}}{{% endfor %}}{{{{ extra }}}}{CHATML}"
    );
    let row = serde_json::json!({"messages": [user.clone(), {"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}],
        "tools": [{"name": "add"}], "chat_template_kwargs": {"extra": true}});
    let tokenizer = with_template(&tools);
    let data =
        Dataset::from_bytes(row.to_string().as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
    let read = read(&tokenizer, &data);
    assert!(read.starts_with("addTrue<|im_start|>user"), "{read}");
    assert_eq!(
        taught(&tools, &row),
        ["bc<|im_end|>"],
        "parts are joined where the template writes no lists"
    );
    let lists = CHATML.replace(
        "{% if m.content is string %}{{ m.content }}{% endif %}",
        "{% for p in m.content %}{{ p.text }}|{% endfor %}",
    );
    let parts = |text: &str| serde_json::json!([{"type": "text", "text": text}]);
    let row = serde_json::json!({"messages": [{"role": "user", "content": parts("a")}, {"role": "assistant", "content": parts("b")}]});
    assert_eq!(
        taught(&lists, &row),
        ["b|<|im_end|>"],
        "and handed over where it reads them"
    );
}

#[test]
fn answers_can_be_read_and_not_learned() {
    let row = |key: &str, value: serde_json::Value| {
        serde_json::json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", key: value},
            {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})
    };
    for (key, value) in [
        ("weight", serde_json::json!(0)),
        ("train", serde_json::json!(false)),
    ] {
        assert_eq!(taught(CHATML, &row(key, value)), ["d<|im_end|>"]);
    }
    assert_eq!(
        taught(CHATML, &row("weight", serde_json::json!(1))),
        ["b<|im_end|>d<|im_end|>"]
    );
    let lists = serde_json::json!({"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
        "completion": [{"role": "assistant", "content": "d"}]});
    assert_eq!(taught(CHATML, &lists), ["d<|im_end|>"]);
}

#[test]
fn an_answer_follows_the_prompt_that_the_model_sees_when_it_is_used() {
    let row = serde_json::json!({"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]});
    let shown = |template: &str| {
        let tokenizer = with_template(template);
        let data =
            Dataset::from_bytes(row.to_string().as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
        (
            read(&tokenizer, &data),
            learned_of(&tokenizer, &data).concat(),
        )
    };
    // A system message that is written into the last turn if that is the user's, as in Mistral's templates.
    let last = "{% for m in messages %}{% if m.role == 'user' %}[INST] {% if loop.last %}{{ messages[0].content + '\n\n' }}{% endif %}{{ m.content }}[/INST]\
        {% elif m.role == 'assistant' %} {{ m.content }}<|im_end|>{% endif %}{% endfor %}";
    assert_eq!(
        shown(last),
        (
            "[INST] Be brief.\n\n2+2?[/INST] 4".to_owned(),
            " 4<|im_end|>".to_owned()
        )
    );
    let chatml = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n4<|im_end|>";
    let suffix = CHATML.replace(
        "{% endif %}{% for c in",
        "{% if m.role == 'user' and loop.last %} /think{% endif %}{% endif %}{% for c in",
    );
    assert_eq!(
        shown(&suffix),
        (
            chatml.replace("2+2?", "2+2? /think"),
            "4<|im_end|>".to_owned()
        )
    );
    let length = format!("{{{{ messages | length }}}}{CHATML}");
    assert_eq!(
        shown(&length),
        (format!("2{chatml}"), "4<|im_end|>".to_owned())
    );
    let prompted = format!("{{% if add_generation_prompt %}}!{{% endif %}}{CHATML}");
    assert_eq!(
        shown(&prompted),
        (format!("!{chatml}"), "4<|im_end|>".to_owned())
    );
}

#[test]
fn an_answer_that_is_read_alone_is_not_learned_with_all_else() {
    let row = serde_json::json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "secret", "weight": 0},
        {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]});
    let tokenizer = with_template(CHATML);
    let text = row.to_string();
    let settings = DataSettings {
        loss_on: LossOn::All,
        ..DataSettings::default()
    };
    let data = Dataset::read(
        &[&DataFile {
            name: "a.jsonl",
            bytes: text.as_bytes(),
        }],
        Ok::<_, tabtune::Error>(&tokenizer),
        &settings,
    )
    .unwrap();
    let learned = learned_of(&tokenizer, &data).concat();
    assert!(
        !learned.contains("secret")
            && learned.starts_with("user\na<|im_end|>\n<|im_start|>assistant\n"),
        "{learned}"
    );
    assert!(
        learned.ends_with("<|im_start|>assistant\nd<|im_end|>\n")
            && read(&tokenizer, &data).contains("secret<|im_end|>"),
        "{learned}"
    );
}

#[test]
fn chosen_answers_are_learned_after_their_prompt() {
    let row = serde_json::json!({"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b"}],
        "rejected": [{"role": "assistant", "content": "c"}]})
    .to_string();
    let tokenizer = with_template(CHATML);
    let settings = |columns: Option<&str>| DataSettings {
        columns: columns.map(|text| serde_json::from_str(text).unwrap()),
        ..DataSettings::default()
    };
    let read = |text: &str, columns| {
        Dataset::read(
            &[&DataFile {
                name: "a.jsonl",
                bytes: text.as_bytes(),
            }],
            Ok::<_, tabtune::Error>(&tokenizer),
            &settings(columns),
        )
    };
    let columns = r#"{"prompt": "prompt", "completion": "chosen"}"#;
    let refused = read(&row, None).unwrap_err().to_string();
    assert!(refused.contains(columns), "{refused}");
    assert_eq!(
        learned_of(&tokenizer, &read(&row, Some(columns)).unwrap()),
        ["b<|im_end|>"]
    );
    let refused = read(
        &"{\"dialogue\": [{\"role\": \"user\", \"content\": \"a\"}]}\n".repeat(2),
        None,
    )
    .unwrap_err()
    .to_string();
    assert!(
        refused.contains(r#"columns: {"messages": "dialogue"}"#),
        "{refused}"
    );
}

#[test]
fn an_end_that_is_written_is_not_learned_twice() {
    let row = |completion: &str| serde_json::json!({"prompt": "hi", "completion": completion});
    assert_eq!(taught(CHATML, &row("yo")), ["yo<|im_end|>"]);
    assert_eq!(taught(CHATML, &row("yo<|im_end|>")), ["yo<|im_end|>"]);
    assert_eq!(
        taught(CHATML, &row("yo<|im_end|>.")),
        ["yo<|im_end|>.<|im_end|>"]
    );
}

#[test]
fn a_template_that_rewrites_earlier_turns_gives_an_example_for_each_answer() {
    let chats: serde_json::Value = serde_json::from_slice(
        &std::fs::read(format!("{}/golden/chats.json", env!("CARGO_MANIFEST_DIR"))).unwrap(),
    )
    .unwrap();
    let row = serde_json::json!({"messages": chats["chats"]["thought"]});
    let learned = taught(chats["templates"]["thinking"].as_str().unwrap(), &row);
    assert_eq!(
        learned,
        [
            "<think>\neasy\n</think>\n\n4<|im_end|>",
            "<think>\nhm\n</think>\n\n6<|im_end|>"
        ]
    );
}

/// A template whose turns end only where the next one begins: `<|im_start|>` begins the user's, `<|endoftext|>` a tool's.
const BEGINNINGS: &str = "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.content }}{% elif m.role == 'tool' %}<|endoftext|>{{ m.content }}\
    {% else %}|{% if m.thought and loop.last %}({{ m.thought }}){% endif %}{{ m.content }}{% if m.tool_calls %}call{% endif %}{% endif %}{% endfor %}\
    {% if add_generation_prompt %}|{% endif %}";

#[test]
fn the_beginning_of_the_next_turn_ends_an_answer_that_has_no_end() {
    let said = |role: &str, content: &str| serde_json::json!({"role": role, "content": content});
    let (a, b, c, d) = (
        said("user", "a"),
        said("assistant", "b"),
        said("user", "c"),
        said("assistant", "d"),
    );
    let taught = |messages: serde_json::Value| {
        taught(BEGINNINGS, &serde_json::json!({ "messages": messages }))
    };
    assert_eq!(
        taught(serde_json::json!([a, b, c, d])),
        ["b<|im_start|>d<|im_start|>"]
    );
    assert_eq!(taught(serde_json::json!([a, b, c])), ["b<|im_start|>"]);
    // After a call the tool's turn is next, whether it is written or not.
    let call = serde_json::json!({"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {}}}]});
    assert_eq!(
        taught(serde_json::json!([a, call, said("tool", "e"), d])),
        ["call<|endoftext|>d<|im_start|>"]
    );
    assert_eq!(taught(serde_json::json!([a, call])), ["call<|endoftext|>"]);
    // The assistant's own next turn is not an end.
    assert_eq!(taught(serde_json::json!([a, b, d])), ["bd<|im_start|>"]);
    // Another turn would change the answer.
    let thought = serde_json::json!({"role": "assistant", "content": "b", "thought": "t"});
    assert_eq!(
        taught(serde_json::json!([a, thought])),
        ["(t)b<|im_start|>"]
    );
    assert_eq!(
        taught(serde_json::json!([a, thought, c, thought])),
        ["(t)b<|im_start|>", "(t)b<|im_start|>"]
    );
}

#[test]
fn a_turn_that_another_ends_is_reported_and_ends_generation() {
    let row = serde_json::json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}).to_string();
    let mut parts = byte_level("qwen2");
    (parts.chat_template, parts.eos) = (Some(BEGINNINGS.to_owned()), vec![2]);
    let base = Tokenizer::from_parts(parts).unwrap();
    assert_eq!((base.turn_end(), base.stops()), (Some(1), vec![2, 1]));
    let data = Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &base, 0.0).unwrap();
    assert_eq!(data.turn_ends(), [1]);
    // If all of a text is learned, the end of its last answer is learned too.
    let settings = DataSettings {
        form: Some(Form::Jsonl),
        loss_on: LossOn::All,
        ..DataSettings::default()
    };
    let file = DataFile {
        name: "rows.jsonl",
        bytes: row.as_bytes(),
    };
    let all = Dataset::read(&[&file], Ok::<_, tabtune::Error>(&base), &settings).unwrap();
    assert_eq!(learned_of(&base, &all), ["a|b<|im_start|>"]);
}

/// A special token inside an answer does not end it: the text after it is learned too.
#[test]
fn a_special_token_inside_an_answer_is_no_end_of_it() {
    let mut parts = byte_level("qwen2");
    parts.eos = vec![2];
    parts.chat_template = Some(
        "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:\n{% endif %}"
            .to_owned(),
    );
    let tokenizer = Tokenizer::from_parts(parts).unwrap();
    let row = serde_json::json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b<|im_start|>c"}]});
    assert_eq!(taught_by(&tokenizer, &row), ["b<|im_start|>c\n"]);
}

#[test]
fn what_was_thought_has_the_names_that_templates_look_for() {
    let template = "{% for m in messages %}{{ m.reasoning_content }}|{{ m.thinking }}|{{ m.content }}<|im_end|>{% endfor %}";
    let row = |name: &str| {
        let mut answer = serde_json::json!({"role": "assistant", "content": "b"});
        answer[name] = "c".into();
        serde_json::json!({"messages": [answer]})
    };
    for name in ["reasoning_content", "thinking", "reasoning"] {
        let tokenizer = with_template(template);
        let data = Dataset::from_bytes(
            row(name).to_string().as_bytes(),
            Form::Jsonl,
            &tokenizer,
            0.0,
        )
        .unwrap();
        assert!(
            read(&tokenizer, &data).starts_with("c|c|b"),
            "{name}: {}",
            read(&tokenizer, &data)
        );
    }
}

#[test]
fn tools_choose_the_template_that_is_named_for_them() {
    let document = Tokenizer::from_parts(byte_level("qwen2"))
        .unwrap()
        .assets()
        .remove(0)
        .1;
    let template = |name: &str, text: &str| serde_json::json!({"name": name, "template": format!("{text}{CHATML}")});
    let config = serde_json::json!({"chat_template": [template("tool_use", "{{ tools | length }} tools"), template("default", "none")]});
    let tokenizer =
        Tokenizer::from_hf(&document, Some(config.to_string().as_bytes()), None).unwrap();
    let said = |role: &str, content: &str| serde_json::json!({"role": role, "content": content});
    let messages = [said("user", "a"), said("assistant", "b")];
    let text = |tools: serde_json::Value| {
        let row = serde_json::json!({"messages": messages, "tools": tools}).to_string();
        Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &tokenizer, 0.0)
            .map(|data| read(&tokenizer, &data))
    };
    assert!(
        text(serde_json::json!([{"name": "f"}]))
            .unwrap()
            .starts_with("1 tools<|im_start|>")
    );
    assert!(
        text(serde_json::Value::Null)
            .unwrap()
            .starts_with("none<|im_start|>")
    );
    for wrong in [
        serde_json::json!({"name": "f"}),
        serde_json::json!(3),
        serde_json::json!("no JSON"),
    ] {
        let refused = text(wrong).unwrap_err();
        assert_eq!(refused.code(), "data.row");
        assert!(refused.to_string().contains("tools: a list"), "{refused}");
    }
}

#[test]
fn a_template_for_tools_alone_serves_the_rows_that_have_tools() {
    let document = Tokenizer::from_parts(byte_level("qwen2"))
        .unwrap()
        .assets()
        .remove(0)
        .1;
    let of = |name: &str| {
        let template = CHATML.replacen("{% for m", "{{ tools | length }}{% for m", 1);
        let config = serde_json::json!({"chat_template": [{"name": name, "template": template}]});
        Tokenizer::from_hf(&document, Some(config.to_string().as_bytes()), None).unwrap()
    };
    let said = |role: &str, content: &str| serde_json::json!({"role": role, "content": content});
    let row = |tools: serde_json::Value| serde_json::json!({"messages": [said("user", "a"), said("assistant", "b")], "tools": tools});
    let (with, without) = (
        row(serde_json::json!([{"name": "f"}])),
        row(serde_json::Value::Null),
    );
    let tokenizer = of("tool_use");
    assert_eq!(taught_by(&tokenizer, &with), ["b<|im_end|>"]);
    assert_eq!(tokenizer.turn_end(), Some(2));
    let refused = |tokenizer: &Tokenizer, row: &serde_json::Value| {
        let refused = Dataset::from_bytes(row.to_string().as_bytes(), Form::Jsonl, tokenizer, 0.0)
            .unwrap_err();
        assert_eq!(refused.code(), "data.template");
        refused.to_string()
    };
    let text = refused(&tokenizer, &without);
    assert!(
        text.contains("line 1")
            && text.contains("no default chat template, which a conversation without tools needs, only named ones: tool_use"),
        "{text}"
    );
    // No conversation uses a template of another name.
    for row in [&with, &without] {
        let text = refused(&of("rag"), row);
        assert!(
            text.contains("cannot write chats")
                && text.contains("no default chat template, only named ones: rag"),
            "{text}"
        );
    }
}

#[test]
fn a_template_that_writes_nothing_of_the_messages_is_refused() {
    let said = |role: &str, content: &str| serde_json::json!({"role": role, "content": content});
    let row = serde_json::json!({"messages": [said("user", "a"), said("assistant", "b")]});
    let other_roles = "{{ bos_token }}{% for m in messages %}{% if m.role == 'human' %}{{ m.content }}{% endif %}{% endfor %}";
    for template in ["{{ 'Hello' }}, how are you?", "<|im_start|>", other_roles] {
        let refused = Dataset::from_bytes(
            row.to_string().as_bytes(),
            Form::Jsonl,
            &with_template(template),
            0.0,
        )
        .unwrap_err();
        assert_eq!(refused.code(), "data.template", "{template}: {refused}");
        assert!(
            refused
                .to_string()
                .contains("writes nothing of this conversation"),
            "{template}: {refused}"
        );
    }
    // Empty answers are written, and one that is nothing but its role teaches its end.
    let silent = serde_json::json!({"messages": [said("user", ""), said("assistant", "")]});
    assert_eq!(taught(CHATML, &silent), ["<|im_end|>"]);
    let plain = with_template("{% for m in messages %}{{ m.content }}{% endfor %}");
    let unlearned =
        serde_json::json!({"messages": [said("user", "a"), said("assistant", "")]}).to_string();
    let file = DataFile {
        name: "a.jsonl",
        bytes: unlearned.as_bytes(),
    };
    let found = Dataset::read(
        &[&file],
        Ok::<_, tabtune::Error>(&plain),
        &DataSettings::default(),
    );
    assert!(
        found
            .err()
            .is_none_or(|error| error.code() != "data.template")
    );
}

/// No special token of the tokenizer is written after an answer.
#[test]
fn answers_without_an_end_are_reported() {
    let said = |role: &str, content: &str| serde_json::json!({"role": role, "content": content});
    let row =
        serde_json::json!({"messages": [said("user", "a"), said("assistant", "b")]}).to_string();
    let codes = |template: &str| {
        let tokenizer = with_template(template);
        let data = Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &tokenizer, 0.0).unwrap();
        data.reading_warnings()
            .iter()
            .map(|warning| warning.code)
            .collect::<Vec<_>>()
    };
    assert!(
        codes("{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}")
            .contains(&"data.end.unknown")
    );
    assert!(!codes(CHATML).contains(&"data.end.unknown"));
    // Marks that enclose the line end after a turn, as those of SmolLM3 do.
    let marked = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content + '<|im_end|>\n' }}\
        {% endgeneration %}{% else %}{{ m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}";
    assert!(!codes(marked).contains(&"data.end.unknown"));
}

//! Messages and token rows that other programs write differently, and those that no program should.

use serde_json::{Value, json};
use tabtune::config::{DataSettings, Form, OnBadRow, TrainConfig};
use tabtune::data::{DataFile, Dataset, Loader};
use tabtune::tokenizer::{Tokenizer, TokenizerParts};

use super::super::tokenizer::byte_level;
use super::chats::{CHATML, taught, with_template};

fn read(row: &Value) -> tabtune::Result<Dataset> {
    Dataset::from_bytes(row.to_string().as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0)
}

fn answered(fields: &Value) -> Value {
    let mut message = json!({"role": "assistant"});
    message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({"messages": [{"role": "user", "content": "a"}, message]})
}

#[test]
fn calls_of_tools_may_be_their_json_text() {
    let call = json!({"function": {"name": "add", "arguments": {"a": 1}}});
    let expected = taught(CHATML, &answered(&json!({"tool_calls": [call.clone()]})));
    assert_eq!(taught(CHATML, &answered(&json!({"tool_calls": json!([call.clone()]).to_string()}))), expected);
    for wrong in [call, json!("add(1)"), json!(1)] {
        let refused = read(&answered(&json!({"tool_calls": wrong}))).unwrap_err().to_string();
        assert!(refused.contains("message 1") && refused.contains("tool_calls, a list of calls"), "{refused}");
    }
}

#[test]
fn rows_that_contradict_themselves_are_refused() {
    let shared = json!({"conversations": [{"from": "human", "value": "h", "content": "other"}, {"from": "gpt", "value": "g"}]});
    let ids = |key: &str| json!({"input_ids": [1, 2, 3], key: [0, 2, 1]});
    let roles = json!({"messages": [{"role": "user", "content": "a"}, {"role": "model", "content": "b"}]});
    for (row, said) in [
        (shared, "found value and content: \"other\""),
        (ids("assistant_masks"), "expected assistant_masks of 0 and 1, found 2"),
        (ids("attention_mask"), "expected attention_mask of 0 and 1, found 2"),
        (roles, "found no message with the role assistant, but model, user"),
    ] {
        let refused = read(&row).unwrap_err().to_string();
        assert!(refused.contains(said), "{said}: {refused}");
    }
}

#[test]
fn a_key_that_a_table_fills_with_null_is_absent() {
    let turns = |more: Value| {
        let turn = |from: &str, value: &str| json!({"from": from, "value": value, "content": more.clone()});
        json!({"conversations": [turn("human", "h"), turn("gpt", "g")]})
    };
    assert_eq!(taught(CHATML, &turns(Value::Null)), ["g<|im_end|>"]);
    assert!(read(&turns(json!("other"))).is_err());
}

#[test]
fn an_end_that_is_learned_twice_is_told() {
    let told = |row: &Value| read(row).unwrap().reading_warnings().iter().any(|warning| warning.code == "data.end.written");
    for end in ["<|im_end|>", "<|im_end|>\n"] {
        assert!(told(&answered(&json!({"content": format!("b{end}")}))), "{end:?} in a chat");
    }
    assert!(told(&json!({"prompt": "a", "completion": " b<|im_end|>\n"})));
    assert!(!told(&answered(&json!({"content": "b"}))) && !told(&json!({"prompt": "a", "completion": " b"})));
}

#[test]
fn an_answer_behind_the_window_says_which_sequences_hold_it() {
    let row = json!({"prompt": "word ".repeat(150), "completion": " b"});
    let rows = format!("{row}\n{}", json!({"prompt": "a", "completion": " b"}));
    let data = Dataset::from_bytes(rows.as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0).unwrap();
    let config = TrainConfig { seq_len: 64, ..TrainConfig::default() };
    let warnings = data.warnings(&Loader::for_run(&data, &config).unwrap());
    let untaught = warnings.iter().find(|warning| warning.code == "data.untaught").unwrap();
    let needed = untaught.message.rsplit_once("sequences of ").unwrap().1.split_once(' ').unwrap().0.parse().unwrap();
    let held = data.warnings(&Loader::for_run(&data, &TrainConfig { seq_len: needed, ..config }).unwrap());
    assert!(held.iter().all(|warning| warning.code != "data.untaught"), "{held:?}");
}

/// Returns the message of the warning with a code, or an empty text.
fn told(code: &str, template: &str, rows: &str) -> String {
    let data = Dataset::from_bytes(rows.as_bytes(), Form::Jsonl, &with_template(template), 0.0).unwrap();
    let warning = data.reading_warnings().into_iter().find(|warning| warning.code == code);
    warning.map_or_else(String::new, |warning| warning.message)
}

#[test]
fn keys_that_the_template_does_not_read_are_counted() {
    let row = json!({
        "messages": [
            {"role": "user", "content": "a", "name": "Ann", "cache": null},
            {"role": "assistant", "content": "b", "loss": false, "function_call": {"name": "f"}, "reasoning": "c", "train": true},
        ],
        "tools": [{"name": "t"}], "chat_template_kwargs": {"enable_thinking": false},
    });
    let of = |template: &str| told("data.columns.unused", template, &format!("{row}\n{row}"));
    let message = of(CHATML);
    for key in ["messages[].name", "messages[].loss", "messages[].function_call", "messages[].reasoning"] {
        assert!(message.contains(&format!("{key} (2)")), "{key}: {message}");
    }
    assert!(message.contains("chat_template_kwargs.enable_thinking (2)") && message.contains("tools (2)"), "{message}");
    assert!(!message.contains("train") && !message.contains("cache") && !message.contains("content"), "{message}");
    // Reasoning is handed over by two other names, and a template may write a whole message without naming its keys.
    let reading = |read: &str| CHATML.replacen("{{ m.content }}", &format!("{{{{ m.content + {read} }}}}"), 1);
    assert!(!of(&reading("(m.reasoning_content or '')")).contains("reasoning"));
    assert_eq!(of(&reading("(m | tojson) + (tools | tojson) + (enable_thinking | string)")), "");
}

#[test]
fn answers_without_text_are_told() {
    let code = "data.answer.empty";
    let empty = [json!({"prompt": "a", "completion": ""}), answered(&json!({"content": " "})), answered(&json!({}))];
    for row in &empty {
        assert!(told(code, CHATML, &row.to_string()).contains("answers have no text"), "{row}");
    }
    let call = json!([{"function": {"name": "add", "arguments": {}}}]);
    let said = [
        json!({"prompt": "", "completion": "b"}),
        answered(&json!({"content": "", "tool_calls": call})),
        json!({"messages": [
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "", "train": false},
            {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
        ]}),
    ];
    for row in &said {
        assert_eq!(told(code, CHATML, &row.to_string()), "", "{row}");
    }
}

#[test]
fn an_integer_that_would_lose_digits_is_a_fault() {
    let long = "18446744073709551616";
    for number in [long, "-9223372036854775809"] {
        let row = format!(r#"{{"text": "a \" 1", "id": [{number}]}}"#);
        let refused = Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0).unwrap_err().to_string();
        assert!(refused.contains(&format!("the integer {number}, which needs more than 64 bits")), "{refused}");
    }
    for number in ["18446744073709551615", "-9223372036854775808", "1e300", "184467440737095516160.0", &format!("\"\\\"{long}\"")] {
        let row = format!(r#"{{"text": "a", "id": {number}}}"#);
        assert!(Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0).is_ok(), "{row}");
    }
}

/// No row is at fault, so that none is left out either.
#[test]
fn a_model_without_a_template_is_told_once() {
    let row = answered(&json!({"content": "b"})).to_string();
    let rows = format!("{row}\n{row}");
    let settings = DataSettings { on_bad_row: OnBadRow::Skip, ..DataSettings::default() };
    let file = DataFile { name: "a.jsonl", bytes: rows.as_bytes() };
    let refused = |tokenizer: &Tokenizer| Dataset::read(&[&file], Ok::<_, tabtune::Error>(tokenizer), &settings).unwrap_err();
    let none = Tokenizer::from_parts(TokenizerParts { chat_template: None, ..byte_level("gpt-2") }).unwrap();
    for (tokenizer, found) in [(none, "the model has no chat template"), (with_template("{% if %}"), "syntax error")] {
        let refused = refused(&tokenizer);
        let said = refused.to_string();
        assert_eq!(refused.code(), "data.template", "{said}");
        assert!(said.contains(found) && said.contains("a model with a chat template") && !said.contains("line 2"), "{said}");
    }
}

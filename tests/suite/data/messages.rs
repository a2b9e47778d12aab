//! Messages and token rows that other programs write differently, and those that no program should.

use serde_json::{Value, json};
use tabtune::config::{Form, TrainConfig};
use tabtune::data::{Dataset, Loader};

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

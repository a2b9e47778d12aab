//! Messages and token rows that other programs write differently, and those that no program should.

use serde_json::{Value, json};
use tabtune::config::{DataSettings, Form, OnBadRow, TrainConfig};
use tabtune::data::{DataFile, Dataset, Loader};
use tabtune::tokenizer::{Tokenizer, TokenizerParts};

use super::super::tokenizer::byte_level;
use super::chats::{CHATML, taught, with_template};

fn read(row: &Value) -> tabtune::Result<Dataset> {
    Dataset::from_bytes(
        row.to_string().as_bytes(),
        Form::Jsonl,
        &with_template(CHATML),
        0.0,
    )
}

fn answered(fields: &Value) -> Value {
    let mut message = json!({"role": "assistant"});
    message
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    json!({"messages": [{"role": "user", "content": "a"}, message]})
}

#[test]
fn calls_of_tools_may_be_their_json_text() {
    let call = json!({"function": {"name": "add", "arguments": {"a": 1}}});
    let expected = taught(CHATML, &answered(&json!({"tool_calls": [call.clone()]})));
    assert_eq!(
        taught(
            CHATML,
            &answered(&json!({"tool_calls": json!([call.clone()]).to_string()}))
        ),
        expected
    );
    for wrong in [call, json!("add(1)"), json!(1)] {
        let refused = read(&answered(&json!({"tool_calls": wrong})))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("message 1") && refused.contains("tool_calls, a list of calls"),
            "{refused}"
        );
    }
}

#[test]
fn a_part_that_is_wrong_is_reported_with_its_place() {
    let chat = |tools: Value| json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "tools": tools});
    let called =
        |call: Value| answered(&json!({"tool_calls": [{"function": {"name": "f"}}, call]}));
    let tool = json!({"type": "function", "function": {"name": "f"}});
    let described = |parameters: &str| json!([tool, {"type": "function", "function": {"name": "g", "parameters": parameters}}]);
    let object = "expected an object, or its JSON, found \"x\"";
    for (row, place, said) in [
        (
            chat(json!([tool, 3])),
            "line 1, tools[1]: ",
            "expected a tool, which is an object or its JSON, found 3",
        ),
        (
            chat(json!([{"type": "function", "function": "x"}])),
            "line 1, tools[0].function: ",
            object,
        ),
        (
            chat(described("x")),
            "line 1, tools[1].function.parameters: ",
            object,
        ),
        (
            chat(json!([{"name": "f", "parameters": "x"}])),
            "line 1, tools[0].parameters: ",
            object,
        ),
        (
            chat(json!(3)),
            "line 1: ",
            "expected tools: a list, or its JSON, found 3",
        ),
        (
            called(json!(3)),
            "line 1, message 1, tool_calls[1]: ",
            "expected a call of a tool, which is an object, found 3",
        ),
        (
            called(json!({"function": "x"})),
            "line 1, message 1, tool_calls[1].function: ",
            object,
        ),
        (
            answered(&json!({"tool_calls": 3})),
            "line 1, message 1: ",
            "expected tool_calls, a list of calls, found 3",
        ),
    ] {
        let refused = read(&row).unwrap_err();
        let text = refused.to_string();
        assert_eq!(refused.code(), "data.row", "{text}");
        assert!(
            text.contains(&format!("{place}the row cannot be used: {said}")),
            "{place}{said}: {text}"
        );
    }
    // Without a role nothing says what is learned.
    let refused = read(&json!({"messages": [{"content": "a"}]})).unwrap_err();
    assert!(
        refused.code() == "data.shape" && refused.to_string().contains("message 0"),
        "{refused}"
    );
}

#[test]
fn rows_that_contradict_themselves_are_refused() {
    let shared = json!({"conversations": [{"from": "human", "value": "h", "content": "other"}, {"from": "gpt", "value": "g"}]});
    let ids = |key: &str| json!({"input_ids": [1, 2, 3], key: [0, 2, 1]});
    let roles =
        json!({"messages": [{"role": "user", "content": "a"}, {"role": "model", "content": "b"}]});
    for (row, said) in [
        (shared, "found value and content: \"other\""),
        (
            ids("assistant_masks"),
            "expected assistant_masks of 0 and 1, found 2",
        ),
        (
            ids("attention_mask"),
            "expected attention_mask of 0 and 1, found 2",
        ),
        (
            roles,
            "found no message with the role assistant, but model, user",
        ),
        (json!({"messages": []}), "found an empty list of messages"),
        (
            json!({"prompt": [], "completion": []}),
            "found an empty list of messages",
        ),
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
fn an_end_that_is_learned_twice_is_reported() {
    let told = |row: &Value| {
        read(row)
            .unwrap()
            .reading_warnings()
            .iter()
            .any(|warning| warning.code == "data.end.twice")
    };
    for end in ["<|im_end|>", "<|im_end|>\n"] {
        assert!(
            told(&answered(&json!({"content": format!("b{end}")}))),
            "{end:?} in a chat"
        );
    }
    assert!(told(
        &json!({"prompt": "a", "completion": " b<|im_end|>\n"})
    ));
    assert!(
        !told(&answered(&json!({"content": "b"})))
            && !told(&json!({"prompt": "a", "completion": " b"}))
    );
    // The end of an earlier turn is not that of the last one, however short this is.
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    let messages = json!([
        turn("user", "2"),
        turn("assistant", "4"),
        turn("user", "3"),
        turn("assistant", "6")
    ]);
    assert!(!told(&json!({ "messages": messages })));
}

#[test]
fn an_answer_behind_the_window_says_which_sequences_hold_it() {
    let row = json!({"prompt": "word ".repeat(150), "completion": " b"});
    let rows = format!("{row}\n{}", json!({"prompt": "a", "completion": " b"}));
    let data =
        Dataset::from_bytes(rows.as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0).unwrap();
    let config = TrainConfig {
        seq_len: 64,
        ..TrainConfig::default()
    };
    let warnings = data.warnings(&Loader::for_run(&data, &config).unwrap());
    let untaught = warnings
        .iter()
        .find(|warning| warning.code == "data.untaught")
        .unwrap();
    let needed = untaught
        .message
        .rsplit_once("equences of ")
        .unwrap()
        .1
        .split_once(' ')
        .unwrap()
        .0
        .parse()
        .unwrap();
    let held = data.warnings(
        &Loader::for_run(
            &data,
            &TrainConfig {
                seq_len: needed,
                ..config
            },
        )
        .unwrap(),
    );
    assert!(
        held.iter().all(|warning| warning.code != "data.untaught"),
        "{held:?}"
    );
}

/// Returns the message of the warning with a code, or an empty text.
fn told(code: &str, template: &str, rows: &str) -> String {
    let data =
        Dataset::from_bytes(rows.as_bytes(), Form::Jsonl, &with_template(template), 0.0).unwrap();
    let warning = data
        .reading_warnings()
        .into_iter()
        .find(|warning| warning.code == code);
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
    for (key, role) in [
        ("name", "user"),
        ("loss", "assistant"),
        ("function_call", "assistant"),
        ("reasoning", "assistant"),
    ] {
        assert!(
            message.contains(&format!("messages[].{key} of the role {role} (2)")),
            "{key}: {message}"
        );
    }
    assert!(
        message.contains("chat_template_kwargs.enable_thinking (2)")
            && message.contains("tools (2)"),
        "{message}"
    );
    assert!(
        !message.contains("train") && !message.contains("cache") && !message.contains("content"),
        "{message}"
    );
    // Reasoning is handed over by two other names, and a template may write a whole message without naming its keys.
    let reading = |read: &str| {
        CHATML.replacen(
            "{{ m.content }}",
            &format!("{{{{ m.content + {read} }}}}"),
            1,
        )
    };
    assert!(!of(&reading("(m.reasoning_content or '')")).contains("reasoning"));
    assert_eq!(
        of(&reading(
            "(m | tojson) + (tools | tojson) + (enable_thinking | string)"
        )),
        ""
    );
}

#[test]
fn an_empty_value_is_not_reported_as_unread() {
    let empty = json!({"content": "b", "tool_calls": [], "reasoning_content": "", "name": " ", "extra": {}});
    let reading = CHATML.replacen(
        "{{ m.content }}",
        "{{ (m.reasoning_content or '') + (m.name or '') + m.content }}",
        1,
    );
    for template in [CHATML, reading.as_str()] {
        assert_eq!(
            told(
                "data.columns.unused",
                template,
                &answered(&empty).to_string()
            ),
            ""
        );
    }
    // A value in a later row is reported all the same.
    let mut named = empty.clone();
    named["name"] = json!("Ann");
    let message = told(
        "data.columns.unused",
        CHATML,
        &format!("{}\n{}", answered(&empty), answered(&named)),
    );
    assert!(
        message.ends_with(": messages[].name of the role assistant (1)."),
        "{message}"
    );
}

#[test]
fn contents_and_keys_that_one_kind_of_message_loses_are_counted() {
    let template = "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.content }}{% elif m.role == 'assistant' %}\
        {% if m.content %}|{{ m.content }}{% else %}|{{ m.tool_calls | tojson }}{% endif %}<|im_end|>{% elif m.role == 'tool' %}{{ m.name }}{% endif %}{% endfor %}\
        {% if add_generation_prompt %}|{% endif %}";
    let call = json!([{"function": {"name": "f", "arguments": {}}}]);
    let chat = |messages: Value| json!({ "messages": messages }).to_string();
    let (user, answer) = (
        json!({"role": "user", "content": "a"}),
        json!({"role": "assistant", "content": "b"}),
    );
    for (messages, lost) in [
        (
            json!([{"role": "developer", "content": "rules"}, user, answer]),
            "messages[].content of the role developer (1)",
        ),
        (
            json!([{"role": "user", "content": "a", "name": "Ann"}, answer]),
            "messages[].name of the role user (1)",
        ),
        (
            json!([user, {"role": "assistant", "content": "b", "tool_calls": call}]),
            "messages[].tool_calls of the role assistant (1)",
        ),
    ] {
        let message = told("data.columns.unused", template, &chat(messages));
        assert!(
            message.ends_with(&format!(": {lost}.")),
            "{lost}: {message}"
        );
    }
    let result = json!({"role": "tool", "name": "f"});
    let all = json!([user, {"role": "assistant", "tool_calls": call}, result, answer]);
    assert_eq!(told("data.columns.unused", template, &chat(all)), "");
}

#[test]
fn answers_without_text_are_reported() {
    let code = "data.answer.empty";
    let empty = [
        json!({"prompt": "a", "completion": ""}),
        answered(&json!({"content": " "})),
        answered(&json!({})),
    ];
    for row in &empty {
        assert!(
            told(code, CHATML, &row.to_string()).contains("answer has no text"),
            "{row}"
        );
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
        let refused = Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains(&format!(
                "the integer {number}, which needs more than 64 bits"
            )),
            "{refused}"
        );
    }
    for number in [
        "18446744073709551615",
        "-9223372036854775808",
        "1e300",
        "184467440737095516160.0",
        &format!("\"\\\"{long}\""),
    ] {
        let row = format!(r#"{{"text": "a", "id": {number}}}"#);
        assert!(
            Dataset::from_bytes(row.as_bytes(), Form::Jsonl, &with_template(CHATML), 0.0).is_ok(),
            "{row}"
        );
    }
}

/// No row is at fault, so that none is left out either.
#[test]
fn a_model_without_a_template_is_reported_once() {
    let row = answered(&json!({"content": "b"})).to_string();
    let rows = format!("{row}\n{row}");
    let settings = DataSettings {
        on_bad_row: OnBadRow::Skip,
        ..DataSettings::default()
    };
    let file = DataFile {
        name: "a.jsonl",
        bytes: rows.as_bytes(),
    };
    let refused = |tokenizer: &Tokenizer| {
        Dataset::read(&[&file], Ok::<_, tabtune::Error>(tokenizer), &settings).unwrap_err()
    };
    let none = Tokenizer::from_parts(TokenizerParts {
        chat_template: None,
        ..byte_level("gpt-2")
    })
    .unwrap();
    for (tokenizer, found) in [
        (none, "the model has no chat template"),
        (with_template("{% if %}"), "syntax error"),
    ] {
        let refused = refused(&tokenizer);
        let said = refused.to_string();
        assert_eq!(refused.code(), "data.template", "{said}");
        assert!(
            said.contains(found) && said.contains("cannot write chats") && !said.contains("line 2"),
            "{said}"
        );
    }
}

/// The kinds of gpt-oss, of Qwen3 with answers in a row, and of Gemma 4, which writes a call before the content that it comes with.
#[test]
fn a_turn_that_is_rewritten_is_learned_as_it_is_used() {
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    let chat = |messages: Value| json!({ "messages": messages });
    // Only the last answer has its reasoning, after a token that the others begin with too.
    let channels = "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.content }}<|im_end|>{% else %}|<|im_start|>\
        {% if m.thinking and loop.last %}{{ m.thinking }}<|im_end|><|im_start|>{% endif %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}\
        {% if add_generation_prompt %}|{% endif %}";
    let thought = |content: &str, thinking: &str| json!({"role": "assistant", "content": content, "thinking": thinking});
    let row = chat(json!([
        turn("user", "a"),
        thought("b", "t"),
        turn("user", "c"),
        thought("d", "u")
    ]));
    assert_eq!(
        taught(channels, &row),
        [
            "<|im_start|>t<|im_end|><|im_start|>b<|im_end|>",
            "<|im_start|>u<|im_end|><|im_start|>d<|im_end|>"
        ]
    );
    // The answer before another one is written without the block that the last one has.
    let blocks = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' and loop.last %}[]{% endif %}{{ m.content }}<|im_end|>\
        {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let read = json!({"role": "assistant", "content": "SECRET", "train": false});
    for more in [vec![], vec![turn("user", "q"), turn("assistant", "z")]] {
        let messages = [
            vec![turn("user", "a"), read.clone(), turn("assistant", "c")],
            more,
        ]
        .concat();
        let learned = taught(blocks, &chat(messages.into())).concat();
        assert!(
            !learned.contains("SECRET")
                && !learned.contains("im_start")
                && learned.contains("c<|im_end|>"),
            "{learned}"
        );
    }
    // The result of a tool is not part of the answer after it.
    let tools = "{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>tool\n{{ m.content }}<|im_end|>{% elif m.role == 'user' %}\
        <|im_start|>user\n{{ m.content }}<|im_end|>{% else %}<|im_start|>assistant\n{% if m.thinking and loop.last %}({{ m.thinking }}){% endif %}\
        {{ m.content or 'call' }}<|im_end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    let call = json!({"role": "assistant", "thinking": "why", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]});
    let row = chat(json!([
        turn("user", "a"),
        call,
        turn("tool", "OUTPUT"),
        turn("assistant", "d")
    ]));
    assert_eq!(taught(tools, &row), ["(why)call<|im_end|>", "d<|im_end|>"]);
    // Text that follows the result of a call in the whole is learned where the answer is written alone.
    let split = "{% for m in messages %}{% if m.role == 'tool' %}{% elif m.role == 'user' %}<|im_start|>{{ m.content }}<|im_end|>{% else %}|\
        {% if m.tool_calls %}call<|endoftext|>{% if not loop.last %}{{ messages[loop.index].content }}{% endif %}{% endif %}{{ m.content }}<|im_end|>\
        {% endif %}{% endfor %}{% if add_generation_prompt %}|{% endif %}";
    let call = json!({"role": "assistant", "content": "look", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]});
    let row = chat(json!([
        turn("user", "a"),
        call,
        turn("tool", "OUTPUT"),
        turn("assistant", "d")
    ]));
    assert_eq!(
        taught(split, &row),
        ["call<|endoftext|>look<|im_end|>", "d<|im_end|>"]
    );
}

/// `str` of a list in Python, which pandas writes into a cell, has single quotes.
#[test]
fn the_notation_of_python_is_reported_as_that() {
    let list = "[{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': \"it's\"}]";
    let read = |form: Form, bytes: &str| {
        Dataset::from_bytes(bytes.as_bytes(), form, &with_template(CHATML), 0.0)
            .unwrap_err()
            .to_string()
    };
    let cell = list.replace('"', "\"\"");
    for refused in [
        read(Form::Csv, &format!("messages\n\"{cell}\"\n")),
        read(Form::Jsonl, &json!({ "messages": list }).to_string()),
        read(Form::Jsonl, &format!("{{'messages': {list}}}\n")),
    ] {
        assert!(
            refused.contains("Python's notation") && refused.contains("json.dumps"),
            "{refused}"
        );
    }
}

//! Rows of instruction, input and output, as a chat or in the layout of Stanford's Alpaca.

use serde_json::Value;

use super::super::messages::Chat;
use super::{Fields, ReadRow, RowContent, text};
use crate::data::read::refused;
use crate::error::{Result, shown, word};

/// Reads instruction, input and output, with the history of earlier turns.
pub(super) fn alpaca(row: &Fields, with_template: bool) -> Result<ReadRow> {
    let optional = |key: &str| match row.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(_) => text(row, key),
    };
    let (instruction, input, output, system) = (
        text(row, "instruction")?,
        optional("input")?,
        text(row, "output")?,
        optional("system")?,
    );
    let no_history = |found: &Value| {
        let expected = "history as a list of pairs of texts";
        refused(word!("data.shape"), expected, shown(&found.to_string()))
    };
    let turns = match row.get("history") {
        None | Some(Value::Null) => &[],
        Some(Value::String(nothing)) if nothing.is_empty() => &[],
        Some(Value::Array(turns)) => turns.as_slice(),
        Some(other) => return Err(no_history(other).into()),
    };
    let mut history = Vec::new();
    for turn in turns {
        match turn.as_array().map(Vec::as_slice) {
            Some([Value::String(said), Value::String(answer)]) => {
                history.push((said.clone(), answer.clone()))
            }
            _ => return Err(no_history(turn).into()),
        }
    }
    let used = ["instruction", "input", "output", "system", "history"];
    let content = if with_template {
        let asked = if input.is_empty() {
            instruction
        } else {
            format!("{instruction}\n\n{input}")
        };
        let turns = history.into_iter().chain([(asked, output)]);
        let said = turns.flat_map(|(said, answer)| [("user", said), ("assistant", answer)]);
        let system = Some(("system", system)).filter(|(_, text)| !text.is_empty());
        RowContent::Chat(Chat::of_texts(system.into_iter().chain(said)))
    } else {
        // The system message comes before everything else.
        let of_turn = |turn: usize| if turn == 0 { system.as_str() } else { "" };
        let before = history
            .iter()
            .enumerate()
            .map(|(turn, (said, answer))| layout(of_turn(turn), said, "") + answer + "\n\n");
        let prompt =
            before.collect::<String>() + &layout(of_turn(history.len()), &instruction, &input);
        RowContent::Completion {
            prompt,
            completion: output,
        }
    };
    Ok(ReadRow {
        alpaca: !with_template,
        ..ReadRow::new(content, &used)
    })
}

/// Returns a prompt with the headings of Stanford's Alpaca (github.com/tatsu-lab/stanford_alpaca), after the system message or its authors'
/// text.
fn layout(system: &str, instruction: &str, input: &str) -> String {
    let task = "Below is an instruction that describes a task";
    let write = "Write a response that appropriately completes the request.";
    let before = match (system.is_empty(), input.is_empty()) {
        (false, _) => system.to_owned(),
        (true, true) => format!("{task}. {write}"),
        (true, false) => {
            format!("{task}, paired with an input that provides further context. {write}")
        }
    };
    let input = if input.is_empty() {
        String::new()
    } else {
        format!("### Input:\n{input}\n\n")
    };
    format!("{before}\n\n### Instruction:\n{instruction}\n\n{input}### Response:\n")
}

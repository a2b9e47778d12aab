//! Messages of the terminal about the data of `golden/data-words.json`.

use std::collections::BTreeMap;

use crate::cli;
use crate::data::words::{arguments, cases};

/// Returns the message of each code that the terminal shows.
pub fn told() -> BTreeMap<String, String> {
    let place = cli::folder("messages");
    let mut told = BTreeMap::new();
    for case in cases() {
        let args = arguments(&case, &place);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let code = case["code"].as_str().unwrap();
        let message = if case["refused"] == true {
            cli::refuse(&args).1
        } else {
            let report = cli::succeed(&args).last().clone();
            let warning = report["warnings"]
                .as_array()
                .unwrap()
                .iter()
                .find(|warning| warning["code"] == code)
                .unwrap()
                .clone();
            warning["message"].as_str().unwrap().to_owned()
        };
        told.insert(code.to_owned(), message);
    }
    std::fs::remove_dir_all(place).unwrap();
    told
}

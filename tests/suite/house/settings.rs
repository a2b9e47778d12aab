//! The schema from which the TypeScript of settings, reports and codes is generated equals that of the code.

use super::source::{root, text};

#[test]
fn settings_have_the_schema_that_is_committed() {
    let output = crate::cli::output(&["schema"]);
    let printed = String::from_utf8(output.stdout).expect("the schema is UTF-8");
    let committed = text(&root().join("web/src/protocol/generated/schema.json"));
    assert!(printed.len() > 10_000, "the schema is printed");
    assert!(
        printed.trim_end() == committed.trim_end(),
        "run npm run generate"
    );
}

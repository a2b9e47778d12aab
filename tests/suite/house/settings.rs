//! The files that are generated from settings, reports and codes are those of the code.

use super::source::root;

#[test]
fn settings_reports_and_codes_are_generated() {
    let root = root();
    let folder = root.to_str().expect("the repository's path is UTF-8");
    let output = crate::cli::output(&["generate", "--check", folder]);
    let changed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "run npm run generate, which writes {changed}"
    );
}

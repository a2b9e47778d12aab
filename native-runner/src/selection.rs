//! Import request from command line options.

use std::collections::BTreeMap;

use tabtune::state::{GroupPolicy, PortableModelImportRequest};

use crate::args::RequestArgs;
use crate::error::{Result, RunError};
use crate::files::read_json;

/// Builds the import request from the options. Returns `None` if they select everything.
///
/// # Errors
/// `source.read` and `cli.json` for `--map`; `cli.usage` for a `--rename` without `=`, and for
/// `--rename-state` without a new name.
pub fn request(args: &RequestArgs) -> Result<Option<PortableModelImportRequest>> {
    let mut request = PortableModelImportRequest::default();
    request.selection.include_patterns.clone_from(&args.include);
    request.selection.exclude_patterns.clone_from(&args.exclude);
    request.key_remap.rename_state = args.rename_state;
    if let Some(path) = &args.map {
        let map: BTreeMap<String, String> =
            serde_json::from_value(read_json(path)?).map_err(|e| RunError::Json {
                name: path.display().to_string(),
                reason: e.to_string(),
            })?;
        request.key_remap.source_to_target.extend(map);
    }
    for rename in &args.rename {
        let Some((from, to)) = rename.split_once('=') else {
            return Err(RunError::Usage(format!(
                "--rename {rename}: expected OLD=NEW"
            )));
        };
        request
            .key_remap
            .source_to_target
            .insert(from.to_string(), to.to_string());
    }
    if args.rename_state && request.key_remap.source_to_target.is_empty() {
        return Err(RunError::Usage(
            "--rename-state goes with --rename or --map, whose names it extends to optimizer state"
                .into(),
        ));
    }
    if args.weights_only {
        request.group_policy = GroupPolicy::WeightsOnly;
    }
    Ok((request != PortableModelImportRequest::default()).then_some(request))
}

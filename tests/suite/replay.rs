//! Vector files through the real optimizers and schedules: the copies in `golden/vectors`, and all of `../shared/vectors` if it exists.

use std::path::{Path, PathBuf};

use tabtune::device::Device;
use tabtune::replay::{ReplayReport, replay};
use tabtune_tests::{block_on, cpu, gpu};

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    files
}

fn report(path: &Path, device: &Device) -> ReplayReport {
    let name = path.file_name().unwrap().to_string_lossy();
    block_on(replay(&name, &std::fs::read(path).unwrap(), device))
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Replays a folder. Returns the number of files that were not skipped.
fn all_pass(folder: &Path, device: &Device) -> usize {
    let reports: Vec<ReplayReport> = files(folder)
        .iter()
        .map(|path| report(path, device))
        .collect();
    for r in &reports {
        let skipped = r
            .skipped
            .as_ref()
            .map_or(String::new(), |reason| format!("skipped: {reason}"));
        println!(
            "{:45} {:9} {:9.2e} {} {}{skipped}",
            r.file,
            r.kind,
            r.max_error,
            if r.ok { "ok" } else { "FAILED" },
            r.detail
        );
    }
    let failed: Vec<&ReplayReport> = reports.iter().filter(|r| !r.ok).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    reports.iter().filter(|r| r.skipped.is_none()).count()
}

fn copies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/vectors")
}

fn shared() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors")
}

/// Returns the folder in `TABTUNE_VECTORS`, or the one next to the repository.
fn full_set() -> PathBuf {
    std::env::var_os("TABTUNE_VECTORS").map_or_else(shared, PathBuf::from)
}

#[test]
fn copies_replay_on_the_cpu() {
    assert!(all_pass(&copies(), &cpu()) >= 18);
}

#[test]
fn copies_replay_on_the_gpu() {
    let Some(device) = gpu() else { return };
    assert!(all_pass(&copies(), &device) >= 18);
}

#[test]
fn the_full_set_replays_on_the_cpu() {
    let folder = full_set();
    if folder.is_dir() {
        assert_eq!(all_pass(&folder, &cpu()), 40);
    }
}

#[test]
fn the_full_set_replays_on_the_gpu() {
    let Some(device) = gpu() else { return };
    let folder = full_set();
    if folder.is_dir() {
        assert_eq!(all_pass(&folder, &device), 40);
    }
}

/// Each of the 50 recorded entries is compared twice: as the host makes it, and as the device's kernel uses it.
#[test]
fn replay_draws_projectors_by_the_kernel() {
    for device in [Some(cpu()), gpu()].into_iter().flatten() {
        let report = report(&copies().join("apollo_projector_expected.json"), &device);
        assert!(
            report.ok && report.detail.starts_with("0/100 "),
            "{report:?}"
        );
    }
}

#[test]
fn replay_sees_a_changed_value() {
    let text = std::fs::read_to_string(copies().join("adamw_bf16_philox_expected.json")).unwrap();
    let mut root: serde_json::Value = serde_json::from_str(&text).unwrap();
    root["steps"][2]["params"][1]["v"]["bits"][3] = "0001".into();
    let changed = block_on(replay("changed", root.to_string().as_bytes(), &cpu())).unwrap();
    assert!(
        !changed.ok && changed.detail.contains("step 3"),
        "{changed:?}"
    );
    root["seed"] = "0x1".into();
    assert!(
        !block_on(replay("reseeded", root.to_string().as_bytes(), &cpu()))
            .unwrap()
            .ok
    );
    assert!(block_on(replay("not a vector file", b"{}", &cpu())).is_err());
}

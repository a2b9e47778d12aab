//! `bench registers`, if Mesa's RADV is installed: memory use of kernels for GPUs, as a compiler for GPUs reports it.

use std::collections::BTreeSet;

use tabtune::catalogue::catalogue;
use tabtune_registers::runs_on_gpus;

use super::succeed;

#[test]
fn bench_registers_finds_what_kernels_for_gpus_keep_in_memory() {
    if tabtune_registers::radv().is_none() {
        eprintln!("skipped what needs Mesa's RADV: it is not installed");
        return;
    }
    let lines = succeed(&["bench", "registers", "--quick"]).lines;
    // Bounded and free loops.
    assert_eq!(
        lines.len(),
        2 * catalogue().filter(|kernel| runs_on_gpus(kernel)).count()
    );
    let with = |key: &str| -> BTreeSet<&str> {
        lines
            .iter()
            .filter(|line| line[key] != 0)
            .map(|line| line["kernel"].as_str().unwrap())
            .collect()
    };
    assert_eq!(
        (with("scratch_bytes"), with("spilled")),
        (BTreeSet::new(), BTreeSet::new())
    );
    assert!(lines.iter().all(|line| {
        line["registers"]
            .as_u64()
            .is_some_and(|registers| registers > 0)
    }));
}

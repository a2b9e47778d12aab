//! A rule of another crate whose rate falls from step to step: when it runs from a recording it uses each step's own rate, or the error names
//! the parameter that is not declared as varying.

use serde_json::json;
use tabtune::error::Error;
use tabtune::gpu::{Buffer, run};
use tabtune::optim::{Layout, Optim, ParamInfo, Rule, Update};
use tabtune::train::Trainer;
use tabtune_tests::{block_on, gpu};

use crate::repeat::run_alone;
use crate::report_every::{State, state, trainer};

/// `p ← p − lr·g`
const TEXT: &str = r"
    struct Params { n: u32, lr: f32 }
    @group(0) @binding(0) var<storage, read_write> g: array<f32>;
    @group(0) @binding(1) var<storage, read_write> gate: Gate;
    @group(0) @binding(2) var<storage, read_write> p: array<f32>;
    @group(0) @binding(3) var<storage, read_write> params: Params;

    @compute @workgroup_size(64)
    fn main(
        @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32,
    ) {
        let i = grid_index(group, groups, lane, 64u);
        if (gate.closed == 0u && i < params.n) { p[i] -= params.lr * g[i]; }
    }
";

tabtune::kernel! {
    /// Kernel whose rate is declared as varying.
    DECLARED = "declared" text (TEXT) [64], (g, gate) -> (mut p),
    /// Number of elements, and the rate.
    struct Declared {
        /// Number of elements.
        n: u32,
        /// Learning rate.
        lr: f32,
    } varying,
    twin |_, _, _| unreachable!("on the CPU nothing is recorded")
}

tabtune::kernel! {
    /// Kernel whose rate is not declared as varying.
    UNDECLARED = "undeclared" text (TEXT) [64], (g, gate) -> (mut p),
    /// Number of elements, and the rate.
    struct Undeclared {
        /// Number of elements.
        n: u32,
        /// Learning rate.
        lr: f32,
    },
    twin |_, _, _| unreachable!("on the CPU nothing is recorded")
}

/// A rule that halves its rate with each step.
#[derive(Debug)]
struct Halving {
    declared: bool,
}

impl Rule for Halving {
    fn binds_gate(&self) -> bool {
        true
    }

    fn layout(&self, _: &ParamInfo) -> Layout {
        Layout::default()
    }

    fn repeats(&self) -> bool {
        true
    }

    fn step(
        &mut self,
        u: &Update<'_>,
        p: Buffer,
        g: Buffer,
        state: Vec<Buffer>,
    ) -> tabtune::Result<(Buffer, Vec<Buffer>)> {
        let (n, lr) = (u.n(), 0.1 * 0.5f32.powi(u.step as i32));
        let (read, groups) = ([g, u.gate.clone()], DECLARED.groups(n as usize));
        let [p] = match self.declared {
            true => run(&DECLARED, read, [p], &Declared { n, lr }, groups)?,
            false => run(&UNDECLARED, read, [p], &Undeclared { n, lr }, groups)?,
        };
        Ok((p, state))
    }
}

#[test]
fn rates_of_a_rule_of_ones_own_are_those_of_each_step() {
    run_alone("varying::alone::rates");
}

mod alone {
    use super::*;

    const STEPS: u64 = 8;

    /// Returns the state after all steps, and whether the last one ran from the recording.
    fn end_of(declared: bool, records: bool) -> tabtune::Result<(State, bool)> {
        let device = gpu().expect("a GPU, which the caller has looked for");
        let mut trainer: Trainer = trainer(&device, None, json!({"max_grad_norm": 0.0}));
        let parameters = trainer.model().parameters();
        let optim = Optim::new(trainer.config(), &parameters)?;
        *trainer.optim_mut() = optim.with_rule("*", |_| Halving { declared })?;
        if records {
            trainer.record_steps();
        }
        for _ in 0..STEPS {
            block_on(trainer.advance())?;
        }
        block_on(trainer.settle())?;
        Ok((state(&trainer), trainer.runs_as_recorded()))
    }

    #[test]
    #[ignore = "run by a test of this file, in a process of its own"]
    fn rates() {
        if gpu().is_none() {
            return;
        }
        let (launched, _) = end_of(true, false).unwrap();
        let (declared, recorded) = end_of(true, true).unwrap();
        assert!(declared == launched && recorded, "declared, as recorded");
        assert!(
            end_of(false, false).unwrap().0 == launched,
            "undeclared, and launched"
        );
        let refused = end_of(false, true).map(|_| ()).unwrap_err();
        assert!(
            matches!(&refused, Error::Refused(list) if list[0].code == "kernel.parameter"),
            "{refused}"
        );
        let message = refused.to_string();
        assert!(
            message.contains("undeclared")
                && message.contains("parameter lr")
                && message.contains("varying"),
            "{message}"
        );
    }
}

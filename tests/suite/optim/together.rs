//! Rules that step several parameters at once.

use std::sync::{Arc, Mutex};

use burn::tensor::{DType, Tensor};
use serde_json::json;
use tabtune::error::Error;
use tabtune::gpu::Buffer;
use tabtune::optim::{Gate, Layout, Member, Optim, ParamInfo, Rule, Stepped, Update};
use tabtune_tests::{block_on, cpu};

use crate::report_every::trainer;

type Seen = Arc<Mutex<Vec<Vec<String>>>>;

/// A rule that changes nothing and records which parameters come together. It ignores parameters beyond `most`.
#[derive(Debug)]
struct Noting {
    seen: Seen,
    most: usize,
}

impl Rule for Noting {
    fn binds_gate(&self) -> bool {
        true
    }

    fn layout(&self, _: &ParamInfo) -> Layout {
        Layout::default()
    }

    fn step(
        &mut self,
        _: &Update<'_>,
        p: Buffer,
        _: Buffer,
        state: Vec<Buffer>,
    ) -> tabtune::Result<Stepped> {
        Ok((p, state))
    }

    fn step_many(
        &mut self,
        own: Member<'_>,
        others: Vec<(&mut dyn Rule, Member<'_>)>,
    ) -> tabtune::Result<Vec<Stepped>> {
        let members: Vec<Member<'_>> = std::iter::once(own)
            .chain(others.into_iter().map(|(_, member)| member))
            .collect();
        self.seen.lock().unwrap().push(
            members
                .iter()
                .map(|member| member.update.parameter.name.clone())
                .collect(),
        );
        Ok(members
            .into_iter()
            .take(self.most)
            .map(|member| (member.p, member.state))
            .collect())
    }
}

#[test]
fn parameters_whose_rules_have_one_type_are_stepped_together() {
    let seen = Seen::default();
    let mut trainer = trainer(&cpu(), None, json!({"max_grad_norm": 0.0}));
    let optim = Optim::new(trainer.config(), &trainer.model().parameters()).unwrap();
    let noting = |_: &ParamInfo| Noting {
        seen: seen.clone(),
        most: usize::MAX,
    };
    *trainer.optim_mut() = optim
        .with_rule("*norm*", noting)
        .unwrap()
        .with_rule("*embed*", noting)
        .unwrap();
    block_on(trainer.advance()).unwrap();
    block_on(trainer.settle()).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    let names = &seen[0];
    assert!(
        names.len() > 2
            && names
                .iter()
                .all(|name| name.contains("norm") || name.contains("embed")),
        "{names:?}"
    );
}

#[test]
fn a_rule_that_forgets_a_parameter_is_refused_by_its_name() {
    let device = cpu().inner();
    let info = ParamInfo {
        name: "p".into(),
        shape: vec![4],
        dtype: DType::F32,
        outside_blocks: false,
    };
    let config = serde_json::from_value(json!({"steps": 1, "learning_rate": 0.1})).unwrap();
    let optim = Optim::new(&config, &[info]).unwrap();
    let mut optim = optim
        .with_rule("p", |_| Noting {
            seen: Seen::default(),
            most: 0,
        })
        .unwrap();
    let [p, grad] = [(); 2].map(|()| Tensor::<1>::ones([4], &device));
    let refused = optim
        .step_param("p", p, Some(grad), 0.1, &Gate::open(1.0, &device))
        .unwrap_err();
    assert!(
        matches!(&refused, Error::StateMismatch(faults) if faults[0].key == "p"),
        "{refused}"
    );
}

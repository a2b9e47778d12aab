use burn::tensor::DType;
use serde_json::json;
use tabtune::device::Device;
use tabtune::error::Error;
use tabtune::interrupt::Interrupt;
use tabtune::optim::{SavedState, StateTensor};
use tabtune_tests::{as_a_gpu, block_on, cpu, gpu};

use super::{Run, infos, rule, rules};

/// An entry of an optimizer file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

pub fn saved(run: &Run) -> Vec<Entry> {
    let entry = |(name, s): (String, StateTensor)| Entry {
        name,
        dtype: s.dtype.into(),
        shape: s.shape.iter().map(|&dim| dim as u64).collect(),
        bytes: block_on(s.bytes()).unwrap(),
    };
    run.optim.state_tensors().into_iter().map(entry).collect()
}

/// Loads `file` as the state of the parameters for which it has steps.
pub fn load(run: &mut Run, file: &[Entry], device: &Device) -> Result<Vec<String>, Error> {
    let with_state: Vec<String> = file
        .iter()
        .filter_map(|entry| entry.name.strip_suffix(":step"))
        .map(String::from)
        .collect();
    load_of(run, file, &with_state, device)
}

fn load_of(
    run: &mut Run,
    file: &[Entry],
    with_state: &[String],
    device: &Device,
) -> Result<Vec<String>, Error> {
    let read = |entry: &Entry| SavedState {
        name: entry.name.clone(),
        dtype: entry.dtype.clone(),
        shape: entry.shape.clone(),
        bytes: entry.bytes.len() as u64,
        read: {
            let bytes = entry.bytes.clone();
            Box::new(move |at, buffer| {
                buffer.copy_from_slice(&bytes[at as usize..at as usize + buffer.len()]);
                Ok(())
            })
        },
    };
    block_on(run.optim.load_state(
        file.iter().map(read).collect(),
        with_state,
        &device.inner(),
        &Interrupt::none(),
    ))
}

fn resumes_bitwise(device: &Device) {
    for rule in rules() {
        for dtype in [DType::F32, DType::BF16] {
            let mut straight = Run::new(&rule, infos(dtype), device);
            (1..=6).for_each(|t| straight.step(t));
            let mut first = Run::new(&rule, infos(dtype), device);
            (1..=3).for_each(|t| first.step(t));
            let file = saved(&first);
            let mut second = Run::new(&rule, infos(dtype), device);
            second.step(9);
            second.values = first.values.to_vec();
            load(&mut second, &file, device).unwrap();
            assert_eq!(saved(&second), file, "{rule:?} {dtype:?}");
            // Loading twice equals loading once; and the saved run continues as if nothing had happened.
            load(&mut second, &file, device).unwrap();
            for t in 4..=6 {
                second.step(t);
                first.step(t);
            }
            assert_eq!(second.bytes(), straight.bytes(), "{rule:?} {dtype:?}");
            assert_eq!(first.bytes(), straight.bytes(), "{rule:?} {dtype:?}");
        }
    }
}

#[test]
fn resume_is_bitwise_on_the_cpu() {
    resumes_bitwise(&cpu());
}

#[test]
fn resume_is_bitwise_on_the_gpu() {
    [gpu(), as_a_gpu()]
        .into_iter()
        .flatten()
        .for_each(|device| resumes_bitwise(&device));
}

#[test]
fn states_have_the_layout_of_the_specification() {
    let layout = |json, dtype| {
        let mut run = Run::new(&rule(json), infos(dtype), &cpu());
        run.step(1);
        let entries = run
            .optim
            .state_tensors()
            .into_iter()
            .filter(|(name, _)| !name.ends_with(":step"));
        entries
            .map(|(name, s)| {
                format!(
                    "{} {} {:?}",
                    name.trim_start_matches("layer."),
                    s.dtype,
                    s.shape
                )
            })
            .collect::<Vec<_>>()
    };
    let adafactor = layout(json!({"type": "adafactor"}), DType::BF16);
    assert_eq!(
        adafactor[..3],
        [
            "0.weight:row F32 [7]",
            "1.weight:col F32 [24]",
            "1.weight:row F32 [16]"
        ]
    );
    assert_eq!(
        adafactor[5..],
        ["3.weight:col F32 [4]", "3.weight:row F32 [10]"]
    );
    let adamw = layout(json!({"type": "adamw"}), DType::BF16);
    assert_eq!(
        adamw[6..],
        ["3.weight:m BF16 [2, 5, 4]", "3.weight:v BF16 [2, 5, 4]"]
    );
    let apollo = layout(json!({"type": "apollo", "rank": 2}), DType::BF16);
    assert_eq!(
        apollo[..5],
        [
            "0.weight:m BF16 [7]",
            "0.weight:v BF16 [7]",
            "1.weight:m F32 [2, 24]",
            "1.weight:norm F32 []",
            "1.weight:v F32 [2, 24]"
        ]
    );
    assert_eq!(layout(json!({"type": "sgd"}), DType::F32), [""; 0]);
}

#[test]
fn every_mismatch_is_listed_and_nothing_changes() {
    let mut run = Run::new(&rule(json!({"type": "adamw"})), infos(DType::F32), &cpu());
    run.step(1);
    let before = run.bytes();
    let mut file = saved(&run);
    file.retain(|entry| entry.name != "layer.0.weight:v");
    for entry in &mut file {
        match entry.name.as_str() {
            "layer.1.weight:m" => entry.dtype = "BF16".into(),
            "layer.2.weight:m" => entry.shape = vec![9, 40],
            "layer.3.weight:step" => entry.bytes = u64::MAX.to_le_bytes().to_vec(),
            _ => {}
        }
    }
    let extra = |name: &str| Entry {
        name: name.into(),
        dtype: "F32".into(),
        shape: vec![],
        bytes: vec![0; 4],
    };
    file.extend([
        extra("layer.0.weight:row"),
        extra("nobody:m"),
        extra("no colon"),
    ]);
    let Err(Error::StateMismatch(faults)) = load(&mut run, &file, &cpu()) else {
        panic!("loaded")
    };
    let mut keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "layer.0.weight:row",
            "layer.0.weight:v",
            "layer.1.weight:m",
            "layer.2.weight:m",
            "layer.3.weight:step",
            "no colon",
            "nobody:m"
        ]
    );
    assert_eq!(run.bytes(), before);
}

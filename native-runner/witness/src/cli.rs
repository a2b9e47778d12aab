//! Command line: options, and the tables that are printed.

use std::io::{self, Write};

use burn::tensor::Device as TensorDevice;
use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum};
use futures_lite::future::block_on;
use serde_json::json;
use tabtune::config::Precision;
use tabtune::device::{Device, DeviceKind};
use tabtune_bench::stock::Planted;

use crate::arithmetic::Arithmetic;
use crate::comparison::{Bounds, Comparison, compare};
use crate::method::{Method, Rule};
use crate::subject::{MODEL_TYPES, Subject};
use crate::track::{Track, by_stock, by_trainer};

/// Trains small models with tabtune's kernels and with Burn's own operations, and reports where the two differ: gradients of the first step
/// for each tensor, the changes that this step makes, what it stores in bf16, and losses. The exit status is 1 if they differ by more than
/// rounding.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Args {
    /// Model types to train; all of them by default
    #[arg(long, value_parser = PossibleValuesParser::new(MODEL_TYPES))]
    pub family: Vec<String>,
    /// Update rules to train with; all of them by default
    #[arg(long, value_enum)]
    pub rule: Vec<Rule>,
    /// Storage types of matrices to train in; both by default
    #[arg(long, value_enum)]
    pub precision: Vec<Storage>,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub steps: u16,
    /// Device on which tabtune trains
    #[arg(long, value_enum, default_value = "wgpu")]
    pub device: TrainerDevice,
    /// Plant this mistake on the side of Burn's operations, in the runs that can have it, and leave out the others
    #[arg(long, value_enum)]
    pub plant: Option<Mistake>,
    /// Print a JSON object for each family, rule, precision and device
    #[arg(long)]
    pub json: bool,
}

/// Devices that tabtune can train on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrainerDevice {
    /// WGSL kernels on the adapter that wgpu finds.
    Wgpu,
    /// The twins of the kernels on the CPU.
    Cpu,
}

/// Storage types of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Storage {
    /// 4 bytes a value
    F32,
    /// 2 bytes a value, with stochastic rounding
    Bf16,
}

impl From<Storage> for Precision {
    fn from(storage: Storage) -> Self {
        match storage {
            Storage::F32 => Self::F32,
            Storage::Bf16 => Self::Bf16,
        }
    }
}

/// Mistakes to plant; see [`Planted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mistake {
    /// Rotary positions turn neighbours instead of the halves of a head
    RopePairs,
    /// The ε of norms is outside the square root
    NormEps,
    /// Weight decay applies to norms and biases
    VectorDecay,
    /// Adafactor does not clip its updates
    UpdateClip,
    /// APOLLO projects without the factor √(dim/rank)
    ProjectionScale,
    /// APOLLO's updates grow without a limit
    GrowthLimit,
    /// SGD does not use Nesterov's form of momentum
    PlainMomentum,
    /// bf16 values are rounded to the nearest
    NearestRounding,
    /// The noise of the first moment rounds parameters and second moments too
    OneStream,
}

impl From<Mistake> for Planted {
    fn from(mistake: Mistake) -> Self {
        match mistake {
            Mistake::RopePairs => Self::RopePairs,
            Mistake::NormEps => Self::NormEps,
            Mistake::VectorDecay => Self::VectorDecay,
            Mistake::UpdateClip => Self::UpdateClip,
            Mistake::ProjectionScale => Self::ProjectionScale,
            Mistake::GrowthLimit => Self::GrowthLimit,
            Mistake::PlainMomentum => Self::PlainMomentum,
            Mistake::NearestRounding => Self::NearestRounding,
            Mistake::OneStream => Self::OneStream,
        }
    }
}

/// A device on which Burn's own operations run.
pub struct Seat {
    /// Name of the device in the tables.
    pub name: String,
    /// Description of the adapter.
    pub adapter: String,
    /// The device itself, without autodiff.
    pub device: TensorDevice,
}

/// Returns Burn's CPU backend.
pub fn flex() -> Seat {
    Seat {
        name: "Flex".into(),
        adapter: "CPU".into(),
        device: TensorDevice::flex(),
    }
}

/// Error that ends the command.
#[derive(Debug)]
pub enum Failure {
    /// An error of the crate.
    Tabtune(tabtune::Error),
    /// No run that was asked for can have the mistake.
    NothingPlanted,
    /// The output could not be written.
    Output(io::Error),
}

impl From<tabtune::Error> for Failure {
    fn from(error: tabtune::Error) -> Self {
        Self::Tabtune(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tabtune(error @ tabtune::Error::NoAdapter { .. }) => {
                write!(
                    f,
                    "{error} [{}]; --device cpu trains by the twins of the kernels",
                    error.code()
                )
            }
            Self::Tabtune(error) => write!(f, "{error} [{}]", error.code()),
            Self::NothingPlanted => {
                f.write_str("none of these rules and precisions can have the planted mistake")
            }
            Self::Output(error) => write!(f, "stdout: {error}"),
        }
    }
}

/// Runs the command with Burn's operations on Flex, on the trainer's own device, and on `more`. Returns true if all agree.
///
/// # Errors
/// Errors of the devices and the training, and of writing to stdout.
pub fn run(args: &Args, more: Vec<Seat>) -> Result<bool, Failure> {
    let methods = methods(args);
    if methods.is_empty() {
        return Err(Failure::NothingPlanted);
    }
    let trainer = block_on(Device::open(match args.device {
        TrainerDevice::Wgpu => DeviceKind::Wgpu,
        TrainerDevice::Cpu => DeviceKind::Cpu,
    }))?;
    let own = (args.device == TrainerDevice::Wgpu).then(|| Seat {
        name: "wgpu".into(),
        adapter: trainer.info().adapter.clone(),
        device: trainer.inner(),
    });
    let seats: Vec<Seat> = [flex()].into_iter().chain(own).chain(more).collect();
    let mut arithmetic = Vec::new();
    for seat in &seats {
        arithmetic.push(block_on(Arithmetic::of(&seat.device))?);
    }
    let is_asked =
        |family: &&str| args.family.is_empty() || args.family.iter().any(|asked| asked == family);
    let mut agree = true;
    for family in MODEL_TYPES.into_iter().filter(is_asked) {
        for method in &methods {
            let subject = Subject::new(
                family,
                *method,
                usize::from(args.steps),
                args.plant.map(Planted::from),
            )?;
            let ours = block_on(by_trainer(&subject, &trainer))?;
            let mut witnesses = Vec::new();
            for (seat, arithmetic) in seats.iter().zip(&arithmetic) {
                let track = block_on(by_stock(&subject, seat.device.clone().autodiff()))?;
                witnesses.push(Witness {
                    comparison: compare(&ours, &track),
                    bounds: arithmetic.bounds().in_precision(method.precision),
                    seat,
                    arithmetic: *arithmetic,
                    track,
                });
            }
            agree &= witnesses.iter().all(|witness| witness.faults().is_empty());
            let mut out = io::stdout().lock();
            let [rule, precision] = method.words();
            let adapter = &trainer.info().adapter;
            if args.json {
                for witness in &witnesses {
                    let mut line = witness.comparison.json(witness.bounds);
                    line["family"] = json!(family);
                    line["rule"] = json!(rule);
                    line["precision"] = json!(precision);
                    line["device"] = json!(witness.seat.name);
                    line["adapter"] = json!(witness.seat.adapter);
                    line["arithmetic"] = json!(witness.arithmetic.name());
                    line["trainer"] = json!(adapter);
                    writeln!(out, "{line}")?;
                }
            } else {
                let title = format!("{family}, {rule} in {precision}: tabtune on {adapter}");
                out.write_all(table(title, &ours, &witnesses).as_bytes())?;
            }
            out.flush()?;
        }
    }
    Ok(agree)
}

/// Returns the methods to train with.
fn methods(args: &Args) -> Vec<Method> {
    let is_asked = |method: &Method| {
        let mut precisions = args
            .precision
            .iter()
            .map(|&storage| Precision::from(storage));
        (args.rule.is_empty() || args.rule.contains(&method.rule))
            && (args.precision.is_empty() || precisions.any(|one| one == method.precision))
            && args.plant.is_none_or(|mistake| method.has(mistake.into()))
    };
    Method::all().into_iter().filter(is_asked).collect()
}

/// A run with Burn's operations, and its distance from tabtune's run.
struct Witness<'a> {
    seat: &'a Seat,
    arithmetic: Arithmetic,
    bounds: Bounds,
    track: Track,
    comparison: Comparison,
}

impl Witness<'_> {
    fn faults(&self) -> Vec<String> {
        self.comparison.faults(self.bounds)
    }
}

/// Maximum number of faults of a device that are printed.
const SHOWN: usize = 8;

/// Formats one line of a table.
fn row(head: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: String = cells.map(|cell| format!("{cell:>14}")).collect();
    format!("  {head:46}{cells}\n")
}

fn table(title: String, ours: &Track, witnesses: &[Witness<'_>]) -> String {
    let devices: String = witnesses
        .iter()
        .map(|witness| {
            format!(
                ", Burn's operations on {} ({}, {})",
                witness.seat.name,
                witness.seat.adapter,
                witness.arithmetic.name()
            )
        })
        .collect();
    let mut out = format!("{title}{devices}\n");
    out += &row(
        "relative L2 distance of gradients, step 1",
        witnesses.iter().map(|witness| witness.seat.name.clone()),
    );
    for (name, _) in witnesses
        .first()
        .map_or(&[][..], |witness| &witness.comparison.gradients)
    {
        let of = |witness: &Witness<'_>| {
            witness
                .comparison
                .gradients
                .iter()
                .find(|(other, _)| other == name)
                .map_or(f64::INFINITY, |found| found.1)
        };
        out += &row(
            name,
            witnesses
                .iter()
                .map(|witness| format!("{:.1e}", of(witness))),
        );
    }
    out += &row(
        "the farthest change of step 1",
        witnesses
            .iter()
            .map(|witness| format!("{:.1e}", witness.comparison.worst_change().1)),
    );
    if !ours.rounded.is_empty() {
        let counts = |witness: &Witness<'_>| {
            let rounding = witness.comparison.rounding();
            [
                rounding.values,
                rounding.equal,
                rounding.split,
                rounding.far,
            ]
        };
        let counts: Vec<_> = witnesses.iter().map(counts).collect();
        let heads = [
            "values in bf16 after step 1",
            "equal before rounding",
            "of these, different after it",
            "of the others, over one unit farther apart",
        ];
        for (at, head) in heads.into_iter().enumerate() {
            out += &row(head, counts.iter().map(|counts| counts[at].to_string()));
        }
    }
    out += &row(
        "loss",
        ["tabtune"]
            .into_iter()
            .chain(witnesses.iter().map(|witness| witness.seat.name.as_str()))
            .map(str::to_string),
    );
    for (step, loss) in ours.losses.iter().enumerate() {
        let theirs = witnesses
            .iter()
            .map(|witness| witness.track.losses.get(step).copied().unwrap_or(f64::NAN));
        out += &row(
            &format!("step {}", step + 1),
            [*loss]
                .into_iter()
                .chain(theirs)
                .map(|loss| format!("{loss:.7}")),
        );
    }
    for witness in witnesses {
        let faults = witness.faults();
        out += &match faults.is_empty() {
            true => format!(
                "  {}: agrees; losses at most {:.1e} apart\n",
                witness.seat.name,
                witness.comparison.worst_loss()
            ),
            false => format!("  {}: DIFFERS\n", witness.seat.name),
        };
        out.extend(
            faults
                .iter()
                .take(SHOWN)
                .map(|fault| format!("    {fault}\n")),
        );
        if faults.len() > SHOWN {
            out += &format!("    and {} more: --json names all\n", faults.len() - SHOWN);
        }
    }
    out
}

//! Launches that are recorded once and run again, without the host's work for each: buffers and workgroups stay the same, and what differs
//! from run to run is written into one buffer before each.

use std::cell::RefCell;

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Int, Tensor};
use cubecl::bytes::Bytes;
use cubecl::client::Graph;
use cubecl::server::Handle;

use crate::error::{Error, Refusal, Result, word};
use crate::gpu::launch::{CubeBackend, CubeTensor, count_dispatches, dispatches};
use crate::gpu::{AnyKernel, Buffer};

/// Bytes from one part of a [`RunBuffer`] to the next: a multiple of what every device aligns bindings to.
const ALIGNMENT: usize = 256;

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// A launch, with its parameters in one run.
struct Run {
    kernel: &'static AnyKernel,
    params: Vec<u32>,
}

/// Parameters of launches, in their order.
#[derive(Default)]
pub struct Varied(Vec<Run>);

impl Varied {
    /// The parameters that differ from run to run.
    fn varying(&self) -> impl Iterator<Item = &Run> {
        self.0.iter().filter(|run| run.kernel.varies)
    }

    /// Refuses parameters that are not declared as varying and differ in another run of the same launches.
    fn check(&self, other: &Self) -> Result<()> {
        let fixed = self.0.iter().zip(&other.0).filter(|(run, _)| !run.kernel.varies);
        for (run, other) in fixed {
            if let Some(at) = run.params.iter().zip(&other.params).position(|(a, b)| a != b) {
                let field = run.kernel.params.get(at).map_or("noise", |(name, _)| name);
                let refusal = Refusal::new(word!("kernel.parameter")).of(run.kernel.name).subject(field);
                let refusal = refusal.expected("the same in each step, or parameters declared as varying").found("another in this step");
                return Err(refusal.hint("write `varying` after the struct of its parameters in kernel!").into());
            }
        }
        Ok(())
    }
}

/// What becomes of this thread's launches.
enum Fate {
    /// They are recorded, with the parameters that vary in slots.
    Recorded(Slots),
    /// They are gone through.
    Rehearsed {
        /// Whether a buffer that is updated in place has other owners, who keep its contents: it would have been copied first.
        shared: bool,
    },
}

struct Tape {
    fate: Fate,
    varied: Varied,
}

struct Slots {
    handle: Handle,
    first: usize,
    count: usize,
}

thread_local! {
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

/// Where a launch has its parameters.
pub(super) enum Params {
    /// In a buffer of their own.
    Own,
    /// In this part of a [`RunBuffer`].
    Slot(Handle),
    /// It is not launched.
    Nowhere,
}

/// Whether launches are only gone through: a buffer that is to be updated is left as it is.
pub(super) fn rehearses(update: &CubeTensor) -> bool {
    TAPE.with_borrow_mut(|tape| match tape {
        Some(Tape { fate: Fate::Rehearsed { shared }, .. }) => {
            *shared |= !update.handle.can_mut();
            true
        }
        _ => false,
    })
}

/// Whether this thread's launches are recorded or gone through.
pub(super) fn records() -> bool {
    TAPE.with_borrow(Option::is_some)
}

/// Where a launch of this thread has its parameters.
pub(super) fn place(kernel: &'static AnyKernel, params: &[u32]) -> Params {
    TAPE.with_borrow_mut(|tape| {
        let Some(Tape { fate, varied }) = tape else { return Params::Own };
        let index = varied.varying().count();
        varied.0.push(Run { kernel, params: params.to_vec() });
        match fate {
            Fate::Rehearsed { .. } => Params::Nowhere,
            Fate::Recorded(slots) if kernel.varies && index < slots.count => {
                Params::Slot(part(&slots.handle, slots.first + index * ALIGNMENT, params.len().next_multiple_of(4)))
            }
            Fate::Recorded(_) => Params::Own,
        }
    })
}

/// An identifier of the underlying allocation, valid while a handle exists.
pub(super) fn place_of(handle: &Handle) -> usize {
    std::ptr::from_ref(handle.memory.descriptor()).addr()
}

/// A part of a buffer: its first byte, its length in words.
pub(super) fn part(whole: &Handle, first: usize, words: usize) -> Handle {
    let (first, bytes) = (first as u64, words as u64 * 4);
    whole.clone().offset_start(first).offset_end(whole.size() - first - bytes)
}

/// Runs `work` with a tape; returns it as well.
fn with_tape<T>(fate: Fate, work: impl FnOnce() -> T) -> (T, Option<Tape>) {
    /// Takes the tape away on a panic too.
    struct Taped;
    impl Drop for Taped {
        fn drop(&mut self) {
            TAPE.set(None);
        }
    }
    TAPE.set(Some(Tape { fate, varied: Varied::default() }));
    let _taped = Taped;
    let result = work();
    (result, TAPE.take())
}

/// What differs between the runs of recordings: inputs as words, and after them the parameters of launches that vary.
pub struct RunBuffer {
    whole: CubeTensor,
    /// Words of each input.
    inputs: Vec<usize>,
    slots: usize,
}

impl RunBuffer {
    /// Room for inputs of so many words, and for the parameters of so many launches, on the device of `like`; `None` on the CPU. To be made
    /// before the last run of what will be recorded.
    pub fn new(like: &Buffer, inputs: Vec<usize>, slots: usize) -> Option<Self> {
        let like = like.cube()?;
        // The allocator's pages have grown with the largest buffer. A recording begins by moving what lies in smaller ones, into memory that
        // its launches would need, while nothing may be allocated; so it is moved now. Closing what was only prepared is an error.
        if like.client.graph_prepare().is_ok() {
            let _never_opened = like.client.stop_capture();
        }
        let bytes = inputs.iter().map(|words| aligned(words * 4)).sum::<usize>() + slots * ALIGNMENT;
        let handle = like.client.empty(bytes);
        let whole = CubeTensor::new_contiguous(like.client.clone(), like.device.clone(), [bytes / 4].into(), handle, DType::I32);
        Some(Self { whole, inputs, slots })
    }

    fn first(&self, input: usize) -> usize {
        self.inputs[..input].iter().map(|words| aligned(words * 4)).sum()
    }

    /// Input of this index, as the launches see it.
    pub fn input(&self, index: usize) -> Tensor<1, Int> {
        let (whole, words) = (&self.whole, self.inputs[index]);
        let handle = part(&whole.handle, self.first(index), words);
        let tensor = CubeTensor::new_contiguous(whole.client.clone(), whole.device.clone(), [words].into(), handle, DType::I32);
        Tensor::from_primitive::<CubeBackend>(tensor)
    }

    /// The input of this index as one number, whose bits it has. → [1].
    pub fn number(&self, index: usize) -> Tensor<1> {
        let whole = &self.whole;
        let handle = part(&whole.handle, self.first(index), 1);
        let tensor = CubeTensor::new_contiguous(whole.client.clone(), whole.device.clone(), [1].into(), handle, DType::F32);
        Tensor::from_primitive::<CubeBackend>(tensor)
    }

    /// Uploads what the next run reads. `false`, and nothing is written, if there are more parameters than slots.
    pub fn write(&self, inputs: &[&[i32]], varied: &Varied) -> bool {
        if varied.varying().count() > self.slots {
            return false;
        }
        let size = self.whole.shape().num_elements() * 4;
        let mut bytes = Vec::with_capacity(size);
        let mut add = |words: &[u8]| {
            bytes.extend_from_slice(words);
            bytes.resize(aligned(bytes.len()), 0);
        };
        inputs.iter().for_each(|input| add(bytemuck::cast_slice(input)));
        varied.varying().for_each(|launch| add(bytemuck::cast_slice(&launch.params)));
        bytes.resize(size, 0);
        self.whole.client.write(&self.whole.handle, Bytes::from_bytes_vec(bytes));
        true
    }

    /// Records the launches of `work` without running them. It reads its inputs from [`RunBuffer::input`], and what it reads from the host
    /// beside them is the same in every run; it neither reads back nor writes from the host. No other thread may use the device meanwhile.
    ///
    /// `None` where the device cannot record, or another run of `work` has not left the memory that this one takes: what it would have
    /// written is lost then, and nothing else.
    ///
    /// # Errors
    ///
    /// Those of `work`.
    pub fn record<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<Option<(Recording, T)>> {
        let client = &self.whole.client;
        if let Err(error) = client.graph_prepare().and_then(|()| client.start_capture()) {
            log::debug!("launches are not recorded: {error}");
            return Ok(None);
        }
        let before = dispatches();
        let slots = Slots { handle: self.whole.handle.clone(), first: self.first(self.inputs.len()), count: self.slots };
        let (result, tape) = with_tape(Fate::Recorded(slots), work);
        let graph = client.stop_capture();
        let recorded = dispatches() - before;
        count_dispatches(0u64.wrapping_sub(recorded));
        let result = result?;
        match graph {
            Ok(graph) => {
                let varied = tape.map(|tape| tape.varied).unwrap_or_default();
                Ok(Some((Recording { graph, varied, dispatches: recorded }, result)))
            }
            Err(error) => {
                log::debug!("launches were not recorded: {error}");
                Ok(None)
            }
        }
    }
}

/// Launches that run again. The memory that they use is kept for them as long as this exists.
pub struct Recording {
    graph: Graph,
    /// Parameters of the launches that vary, as they were when it was recorded.
    varied: Varied,
    dispatches: u64,
}

impl Recording {
    /// The parameters with which it was recorded.
    pub fn varied(&self) -> &Varied {
        &self.varied
    }

    /// Goes through `work` without launching anything: the parameters that the launches have in this run. `None` if `work` would launch
    /// others than were recorded, or would copy a buffer that somebody else holds.
    ///
    /// # Errors
    ///
    /// `kernel.parameter` for a parameter that is not declared as varying and is another than it was recorded, and those of `work`.
    pub fn rehearse(&self, work: impl FnOnce() -> Result<()>) -> Result<Option<Varied>> {
        let (result, tape) = with_tape(Fate::Rehearsed { shared: false }, work);
        result?;
        let Some(Tape { fate: Fate::Rehearsed { shared: false }, varied }) = tape else { return Ok(None) };
        let kernels = |Varied(list): &Varied| list.iter().map(|launch| launch.kernel.name).collect::<Vec<_>>();
        if kernels(&varied) != kernels(&self.varied) {
            return Ok(None);
        }
        self.varied.check(&varied)?;
        Ok(Some(varied))
    }

    /// Runs the launches.
    #[allow(unsafe_code, reason = "the call that runs a recording is unsafe")]
    pub fn run(&self) -> Result<()> {
        count_dispatches(self.dispatches);
        // SAFETY: the graph keeps the pages of all buffers that its launches use; work of this thread alone is on its stream, in order, and
        // other threads leave the device alone (`RunBuffer::record`).
        unsafe { self.graph.replay() }.map_err(Error::device_lost)
    }
}

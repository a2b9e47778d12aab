//! Launches that are recorded once and run again, without the host's work for each: buffers and workgroups stay the same, and the values that
//! differ from run to run are written into one buffer before each run.

use burn::backend::TensorMetadata;
use burn::tensor::{DType, Int, Tensor};
use cubecl::bytes::Bytes;
use cubecl::client::Graph;

use crate::error::{Error, Result};
use crate::gpu::Buffer;
use crate::gpu::allocation::part;
use crate::gpu::capture::{ALIGNMENT, CaptureMode, Slots, Tape, Varied, with_tape};
use crate::gpu::counter::{count_dispatches, dispatches};
use crate::gpu::launch::{CubeBackend, CubeTensor, tensor_at};

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// The values that differ between the runs of recordings: inputs as words, and after them the parameters of launches that vary.
pub struct RunBuffer {
    whole: CubeTensor,
    /// Number of words of each input.
    inputs: Vec<usize>,
    slots: usize,
}

impl RunBuffer {
    /// Reserves room for inputs of these numbers of words, and for the parameters of `slots` launches, on the device of `like`; `None` on the CPU.
    /// Call it before the last unrecorded run of the launches that will be recorded.
    pub fn new(like: &Buffer, inputs: Vec<usize>, slots: usize) -> Option<Self> {
        let like = like.cube()?;
        // The allocator's pages have grown with the largest buffer. A recording begins by moving the contents of smaller pages into memory that
        // its launches would need, while nothing may be allocated; so they are moved here. Closing a recording that was only prepared is an error.
        if like.client.graph_prepare().is_ok() {
            let _never_opened = like.client.stop_capture();
        }
        let bytes =
            inputs.iter().map(|words| aligned(words * 4)).sum::<usize>() + slots * ALIGNMENT;
        let handle = like.client.empty(bytes);
        let whole = tensor_at(like, handle, [bytes / 4], DType::I32);
        Some(Self {
            whole,
            inputs,
            slots,
        })
    }

    fn first(&self, input: usize) -> usize {
        self.inputs[..input]
            .iter()
            .map(|words| aligned(words * 4))
            .sum()
    }

    /// The input of this index `[words]`, as the launches see it.
    pub fn input(&self, index: usize) -> Tensor<1, Int> {
        let words = self.inputs[index];
        Tensor::from_primitive::<CubeBackend>(self.words(index, words, DType::I32))
    }

    /// The first word of the input of this index as an f32 with its bits, `[1]`.
    pub fn number(&self, index: usize) -> Tensor<1> {
        Tensor::from_primitive::<CubeBackend>(self.words(index, 1, DType::F32))
    }

    fn words(&self, index: usize, words: usize, dtype: DType) -> CubeTensor {
        let handle = part(&self.whole.handle, self.first(index), words);
        tensor_at(&self.whole, handle, [words], dtype)
    }

    /// Uploads the inputs and the varying parameters of the next run. Returns `false`, and writes nothing, if there are more of these parameters
    /// than slots.
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
        inputs
            .iter()
            .for_each(|input| add(bytemuck::cast_slice(input)));
        varied
            .varying()
            .for_each(|launch| add(bytemuck::cast_slice(&launch.params)));
        bytes.resize(size, 0);
        self.whole
            .client
            .write(&self.whole.handle, Bytes::from_bytes_vec(bytes));
        true
    }

    /// Records the launches of `work` without running them. `work` reads its inputs from [`RunBuffer::input`]; all else that it takes from the host
    /// must be the same in every run. It neither reads back nor writes from the host. No other thread may use the device meanwhile.
    ///
    /// Returns `None` where the device cannot record, or where earlier runs of `work` have not left the memory that this one takes: only its
    /// output is lost then.
    ///
    /// # Errors
    ///
    /// The errors of `work`.
    pub fn record<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<Option<(Recording, T)>> {
        let client = &self.whole.client;
        if let Err(error) = client.graph_prepare().and_then(|()| client.start_capture()) {
            log::debug!("launches are not recorded: {error}");
            return Ok(None);
        }
        let before = dispatches();
        let slots = Slots {
            handle: self.whole.handle.clone(),
            first: self.first(self.inputs.len()),
            count: self.slots,
        };
        let (result, tape) = with_tape(CaptureMode::Recorded(slots), work);
        let graph = client.stop_capture();
        let recorded = dispatches() - before;
        count_dispatches(0u64.wrapping_sub(recorded));
        let result = result?;
        match graph {
            Ok(graph) => {
                let varied = tape.map(|tape| tape.varied).unwrap_or_default();
                Ok(Some((
                    Recording {
                        graph,
                        varied,
                        dispatches: recorded,
                    },
                    result,
                )))
            }
            Err(error) => {
                log::debug!("launches were not recorded: {error}");
                Ok(None)
            }
        }
    }
}

/// Recorded launches that can run again. The memory that they use is kept for them as long as this exists.
pub struct Recording {
    graph: Graph,
    /// The parameters of the launches, as they were when it was recorded.
    varied: Varied,
    dispatches: u64,
}

impl Recording {
    /// The parameters with which it was recorded.
    pub fn varied(&self) -> &Varied {
        &self.varied
    }

    /// Goes through `work` without launching anything and returns the parameters that its launches have in this run. `None` if `work` would launch
    /// other kernels than were recorded, or would copy a buffer that has other owners.
    ///
    /// # Errors
    ///
    /// `kernel.parameter` for a parameter that is not declared as varying and differs from the recorded one, and the errors of `work`.
    pub fn rehearse(&self, work: impl FnOnce() -> Result<()>) -> Result<Option<Varied>> {
        let (result, tape) = with_tape(CaptureMode::Rehearsed { shared: false }, work);
        result?;
        let Some(Tape {
            mode: CaptureMode::Rehearsed { shared: false },
            varied,
        }) = tape
        else {
            return Ok(None);
        };
        if !varied.kernels().eq(self.varied.kernels()) {
            return Ok(None);
        }
        self.varied.check(&varied)?;
        Ok(Some(varied))
    }

    /// Runs the recorded launches.
    ///
    /// # Errors
    ///
    /// `device.lost`.
    #[allow(unsafe_code, reason = "the call that runs a recording is unsafe")]
    pub fn run(&self) -> Result<()> {
        count_dispatches(self.dispatches);
        // SAFETY: the graph keeps the pages of all buffers that its launches use; work of this thread alone is on its stream, in order, and
        // other threads leave the device alone (`RunBuffer::record`).
        unsafe { self.graph.replay() }.map_err(Error::device_lost)
    }
}

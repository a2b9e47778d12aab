//! Whether there is a CUDA device to compute on. The libraries are asked before Burn is: where one is missing, Burn's runtime panics on a thread
//! of its own.

use std::fmt;

use cubecl_cuda::install::cuda_path;
use cudarc::driver::result::{self, DriverError};
use cudarc::{driver, nvrtc};

/// The first CUDA device.
pub struct Found {
    /// Its name, as the driver has it.
    pub name: String,
}

/// Why nothing can be computed with CUDA here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The driver's library cannot be opened.
    Library,
    /// The driver has no device, or cannot start.
    Devices,
    /// There is a device, but not the library that compiles its kernels.
    Nvrtc,
    /// There is that library, but not the headers that it reads.
    Headers,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Library | Self::Devices => "no CUDA device",
            Self::Nvrtc => "no NVRTC: install the CUDA toolkit (libnvrtc), or set LD_LIBRARY_PATH to it",
            Self::Headers => "no headers of CUDA: install the CUDA toolkit, or set CUDA_PATH to the folder that has its `include`",
        })
    }
}

/// The device that `Device::cuda(0)` will be, or why it would be none. Never panics.
pub fn device() -> Result<Found, Absent> {
    let (driver, nvrtc) = libraries();
    if !driver {
        return Err(Absent::Library);
    }
    let name = first().ok().flatten().ok_or(Absent::Devices)?;
    match (nvrtc, cuda_path()) {
        (false, _) => Err(Absent::Nvrtc),
        // The runtime would panic.
        (true, None) => Err(Absent::Headers),
        (true, Some(_)) => Ok(Found { name }),
    }
}

/// Whether the driver's library and NVRTC's can be opened.
#[allow(unsafe_code)]
fn libraries() -> (bool, bool) {
    // SAFETY: opening a library runs its initializers, and closing it again their opposites. Those of NVIDIA's two ask nothing of their caller.
    unsafe { (driver::sys::is_culib_present(), nvrtc::sys::is_culib_present()) }
}

/// The name of the first of the driver's devices.
fn first() -> Result<Option<String>, DriverError> {
    result::init()?;
    if result::device::get_count()? < 1 {
        return Ok(None);
    }
    result::device::get_name(result::device::get(0)?).map(Some)
}

//! Search for a usable CUDA device. The libraries are checked before Burn is used: if one is missing, Burn's runtime panics on a thread of its
//! own.

use std::fmt;

use cubecl_cuda::install::cuda_path;
use cudarc::driver::result::{self, DriverError};
use cudarc::{driver, nvrtc};

/// The first CUDA device.
pub struct Found {
    /// Name of the device, as the driver reports it.
    pub name: String,
}

/// Reason why nothing can be computed with CUDA on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The driver's library cannot be opened.
    Library,
    /// The driver has no device, or cannot start.
    Devices,
    /// There is a device, but not NVRTC, the library that compiles its kernels.
    Nvrtc,
    /// There is NVRTC, but not the headers that it reads.
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

/// Returns the device that `Device::cuda(0)` will be. Never panics.
///
/// # Errors
/// The reason why there is no usable device.
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

/// Returns two flags: the driver's library can be opened, and NVRTC's can.
#[allow(unsafe_code)]
fn libraries() -> (bool, bool) {
    // SAFETY: opening a library runs its initializers, and closing it runs its finalizers. NVIDIA's two libraries require nothing of the
    // caller.
    unsafe {
        (
            driver::sys::is_culib_present(),
            nvrtc::sys::is_culib_present(),
        )
    }
}

/// Returns the name of the driver's first device, if there is one.
fn first() -> Result<Option<String>, DriverError> {
    result::init()?;
    if result::device::get_count()? < 1 {
        return Ok(None);
    }
    result::device::get_name(result::device::get(0)?).map(Some)
}

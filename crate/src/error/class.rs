//! The classes of errors, and who raises them.

/// Component that raises a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Raiser {
    /// This crate, or the native runner.
    Core,
    /// The TypeScript of the npm package.
    Page,
    /// Either.
    Both,
}

impl Raiser {
    /// Returns its name in the schema.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Page => "page",
            Self::Both => "both",
        }
    }
}

macro_rules! classes {
    ($($class:ident = $text:literal),+ $(,)?) => {
        /// Classes of errors, which TypeScript shows as `code`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Class {
            $(#[doc = concat!("`", $text, "`.")] $class,)+
            /// Class of a code that is only ever a warning.
            Warning,
        }

        impl Class {
            /// All classes of errors.
            pub const ALL: &[Self] = &[$(Self::$class),+];

            /// Returns the upper-case name of the class.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$class => $text,)+
                    Self::Warning => "WARNING",
                }
            }
        }
    };
}

classes! {
    UnsupportedBrowser = "UNSUPPORTED_BROWSER",
    NoAdapter = "NO_ADAPTER",
    MissingFeature = "MISSING_FEATURE",
    LimitExceeded = "LIMIT_EXCEEDED",
    OutOfMemory = "OUT_OF_MEMORY",
    DeviceLost = "DEVICE_LOST",
    GpuUnavailable = "GPU_UNAVAILABLE",
    ShaderFailed = "SHADER_FAILED",
    WorkerCrashed = "WORKER_CRASHED",
    BadModelFile = "BAD_MODEL_FILE",
    UnsupportedArch = "UNSUPPORTED_ARCH",
    UnsupportedQuant = "UNSUPPORTED_QUANT",
    Integrity = "INTEGRITY",
    BadOption = "BAD_OPTION",
    NonFinite = "NON_FINITE",
    QuotaExceeded = "QUOTA_EXCEEDED",
    StorageFailed = "STORAGE_FAILED",
    StorageBlocked = "STORAGE_BLOCKED",
    CheckpointCorrupt = "CHECKPOINT_CORRUPT",
    CheckpointVersion = "CHECKPOINT_VERSION",
    CheckpointMismatch = "CHECKPOINT_MISMATCH",
    Busy = "BUSY",
    Protocol = "PROTOCOL",
    Aborted = "ABORTED",
}

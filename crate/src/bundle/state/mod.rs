//! What a state dict says of its tensors and groups: plain data, checked here, without any payload.

mod group;
mod tensor;
mod tokenizer_record;

pub use group::{
    GroupClass, GroupMember, ModelStateGroupAssignment, OptimizerAccount, ParameterSemantics, Residency, ResidencyPolicy, SchedulerAccount,
};
pub use tensor::{Identity, ModelStateTensorManifest, StateWord, TensorRole, byte_len};
pub use tokenizer_record::{AssetFormat, TokenizerFamily, TokenizerRecord};

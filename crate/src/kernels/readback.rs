//! Reading tensors back. Always awaited: a blocking read panics in the browser.

use burn::tensor::{Tensor, TensorData};

use crate::error::{Error, Result};

/// The stored bytes of a tensor with shape and dtype.
pub async fn read_data<const D: usize>(tensor: Tensor<D>) -> Result<TensorData> {
    tensor.into_data_async().await.map_err(|error| Error::DeviceLost { reason: error.to_string() })
}

/// The values of an f32 tensor, row-major.
pub async fn read_f32<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    let data = read_data(tensor).await?;
    data.try_to_vec().map_err(|error| Error::DeviceLost { reason: format!("{error:?}") })
}

//! Reads tensors back. Reads are always awaited: a blocking read panics in the browser.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use burn::tensor::{Tensor, TensorData};

use crate::error::{Error, Result};
use crate::gpu::{Buffer, launch};

/// Reads the stored bytes of a tensor, with its shape and dtype.
///
/// # Errors
///
/// `device.lost` if the read fails.
pub async fn read_data<const D: usize>(tensor: Tensor<D>) -> Result<TensorData> {
    tensor.into_data_async().await.map_err(Error::device_lost)
}

/// Reads the values of an f32 tensor, row-major.
///
/// # Errors
///
/// `device.lost` if the read fails, or the tensor is not f32.
pub async fn read_f32<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>> {
    let data = read_data(tensor).await?;
    data.try_to_vec().map_err(|error| Error::DeviceLost {
        reason: format!("{error:?}"),
    })
}

/// A read of an f32 tensor that was already submitted to the device: it does not wait for work that is submitted later.
pub struct StartedRead(Reading);

enum Reading {
    Done(Result<Vec<f32>>),
    Waiting(Pin<Box<dyn Future<Output = Result<Vec<f32>>>>>),
}

impl StartedRead {
    /// Submits a read of all values of `tensor [n]`.
    pub async fn of(tensor: Tensor<1>) -> Self {
        Self::started(read_f32(tensor)).await
    }

    /// Submits a read of the first `words` of an f32 buffer, which may be written in place from then on.
    pub async fn of_first(buffer: &Buffer, words: usize) -> Self {
        let Some(tensor) = buffer.cube() else {
            return Self::of(buffer.clone().float::<1>().narrow(0, 0, words)).await;
        };
        let read = launch::read_first(tensor, words);
        Self::started(async { read.await.map_err(Error::device_lost) }).await
    }

    async fn started(read: impl Future<Output = Result<Vec<f32>>> + 'static) -> Self {
        let mut read = Box::pin(read);
        let first = poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await;
        Self(match first {
            Poll::Ready(values) => Reading::Done(values),
            Poll::Pending => Reading::Waiting(read),
        })
    }

    /// Waits for the values and returns them.
    ///
    /// # Errors
    ///
    /// `device.lost` if the read fails.
    pub async fn values(self) -> Result<Vec<f32>> {
        match self.0 {
            Reading::Done(values) => values,
            Reading::Waiting(read) => read.await,
        }
    }
}

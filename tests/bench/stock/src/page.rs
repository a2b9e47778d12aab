//! The stock model for a page.

use tabtune::data::{Dataset, Loader};
use tabtune::device::{Device, DeviceKind};
use tabtune::gpu::read_f32;
use wasm_bindgen::prelude::*;

use crate::stock::Stock;
use crate::work::{MEDIUM, SMALL, TINY};

/// A run from its first step.
#[wasm_bindgen]
pub struct StockRun {
    model: Stock,
    data: Dataset,
    loader: Loader,
}

fn thrown(error: tabtune::Error) -> JsError {
    JsError::new(&error.to_string())
}

#[wasm_bindgen]
impl StockRun {
    /// The model of a size, on the page's adapter.
    pub async fn create(size: String) -> Result<StockRun, JsError> {
        let shape = match size.as_str() {
            "tiny" => TINY,
            "small" => SMALL,
            "medium" => MEDIUM,
            other => return Err(JsError::new(&format!("no size {other}"))),
        };
        let device = Device::open(DeviceKind::Wgpu).await.map_err(thrown)?;
        let data = Dataset::from_tokens(shape.tokens(), 0.0).map_err(thrown)?;
        let config = shape.train_config();
        let loader = Loader::for_run(&data, &config).map_err(thrown)?;
        Ok(StockRun {
            model: shape.stock(device.autodiff()),
            data,
            loader,
        })
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.model.parameters()
    }

    /// One step; its loss.
    pub async fn step(&mut self) -> Result<f32, JsError> {
        let batch = self.loader.next(&self.data);
        let loss = self.model.forward(&batch);
        let values = read_f32(self.model.update(loss)).await.map_err(thrown)?;
        Ok(values.first().copied().unwrap_or(f32::NAN))
    }
}

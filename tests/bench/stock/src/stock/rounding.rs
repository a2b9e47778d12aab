//! Rounding to bf16 in f32 arithmetic alone, by noise that is given as numbers.

use burn::tensor::Tensor;

/// Rounds finite values to one of the two nearest bf16 values, which have 8 bits: away from zero where the noise, from 0 to 65,535, is less than
/// 65,536 times the value's share of the way. Each operation is exact in f32.
pub(super) fn rounded(x: Tensor<2>, noise: Tensor<2>) -> Tensor<2> {
    let size = x.clone().abs();
    let near = of_8_bits(size.clone());
    // 255/256 of a bf16 value is nearest to the one below it, and 1029/1024 to the one above.
    let below = of_8_bits(near.clone() * (255.0 / 256.0));
    let low = near.clone().mask_where(near.greater(size.clone()), below);
    let high = of_8_bits(low.clone() * (1029.0 / 1024.0));
    let step = high.clone() - low.clone();
    let away = (noise * step).lower((size - low.clone()) * 65536.0);
    low.mask_where(away, high) * x.sign()
}

/// Rounds to 8 of the 24 bits (Dekker 1971, "A floating-point technique for extending the available precision").
fn of_8_bits(x: Tensor<2>) -> Tensor<2> {
    let spread = x.clone() * 65537.0;
    spread.clone() - (spread - x)
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};
    use tabtune::bf16::{round_stochastic, widen};

    use super::*;

    /// Values next to powers of two and in between, of both signs, with the noise next to their share.
    #[test]
    fn rounds_as_the_bits_of_a_value_say() {
        let device = Device::flex();
        let (mut values, mut noises) = (vec![0.0], vec![0]);
        for high in [
            0x0100, 0x3f7f, 0x3f80, 0x3f81, 0x3fff, 0x4000, 0x4055, 0x7000,
        ] {
            for low in [0, 1, 2, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff] {
                for noise in [0, low - 1, low, 0xffff] {
                    for sign in [0, 0x8000_0000] {
                        values.push(f32::from_bits(sign | high << 16 | low as u32));
                        noises.push(noise.max(0));
                    }
                }
            }
        }
        let n = values.len();
        let tensor =
            |values: Vec<f32>| Tensor::<2>::from_data(TensorData::new(values, [1, n]), &device);
        let noise = noises.iter().map(|&noise| noise as f32).collect();
        let found = rounded(tensor(values.clone()), tensor(noise)).into_data();
        let expected: Vec<f32> = values
            .iter()
            .zip(&noises)
            .map(|(&x, &noise)| widen(round_stochastic(x, noise as u32)))
            .collect();
        assert_eq!(found.try_to_vec::<f32>().unwrap(), expected);
    }
}

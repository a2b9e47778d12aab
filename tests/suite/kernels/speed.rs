//! Not a test of speed but a way to measure it: `cargo test … speed -- --ignored --nocapture`.

use burn::tensor::{Distribution, Int, Tensor, TensorData};
use std::time::Instant;
use tabtune::kernels::{self, AttentionShape, Positions};
use tabtune_tests::kernels::noise;
use tabtune_tests::{block_on, gpu};

/// CPU seconds of this process, all threads: what a software adapter costs on a busy machine.
fn cpu_secs() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn wait(tensor: Tensor<2>) {
    block_on(tensor.slice([0..1, 0..1]).into_data_async()).unwrap();
}

#[test]
#[ignore = "a measurement"]
fn linear_speed() {
    let Some(device) = gpu() else { return };
    let device = device.inner();
    for (n, m, k) in [(512, 1024, 128), (512, 128, 128), (512, 344, 128), (512, 128, 344), (512, 128, 341), (1, 1024, 576), (64, 1536, 576)]
    {
        let x = Tensor::<2>::random([n, k], Distribution::Default, &device);
        let w = Tensor::<2>::random([m, k], Distribution::Default, &device);
        let dy = Tensor::<2>::random([n, m], Distribution::Default, &device);
        let ops: [(&str, &dyn Fn() -> Tensor<2>); 3] = [
            ("forward", &|| kernels::linear(x.clone(), w.clone())),
            ("dx", &|| kernels::conv1d(dy.clone(), w.clone())),
            ("stock", &|| x.clone().matmul(w.clone().transpose())),
        ];
        for (name, op) in ops {
            wait(op());
            let (start, cpu) = (Instant::now(), cpu_secs());
            let runs = 5;
            for _ in 0..runs {
                op();
            }
            wait(op());
            let secs = start.elapsed().as_secs_f64() / f64::from(runs + 1);
            let cpu = (cpu_secs() - cpu) / f64::from(runs + 1);
            let flops = 2.0 * (n * m * k) as f64 / 1e9;
            println!("{name:8} {n}x{m}x{k}: {:.2} ms, {:.2} GFLOP/s, {:.2} per core", secs * 1e3, flops / secs, flops / cpu);
        }
    }
}

/// Weights of one block: two norms, q, k, v, o, gate, up, down.
struct Block(Vec<Tensor<2>>);

#[test]
#[ignore = "a measurement"]
fn step_speed() {
    let Some(device) = gpu() else { return };
    let device = device.autodiff();
    let (d, layers, heads, ffn, vocab, len, batch) = (128, 4, 4, 344, 1024, 128, 4);
    let half = d / heads / 2;
    let weight = |rows: usize, columns: usize| {
        let values = noise(rows * columns, (rows + columns) as u32).iter().map(|v| v * 0.05).collect::<Vec<_>>();
        Tensor::<2>::from_data(TensorData::new(values, [rows, columns]), &device).require_grad()
    };
    let table = weight(vocab, d);
    let shapes = [(1, d), (1, d), (d, d), (d, d), (d, d), (d, d), (ffn, d), (ffn, d), (d, ffn)];
    let blocks: Vec<Block> = (0..layers).map(|_| Block(shapes.iter().map(|&(r, c)| weight(r, c)).collect())).collect();
    let rotations = || Tensor::<2>::ones([len, half], &device.clone().inner());
    let ids: Vec<i32> = (0..(batch * len) as i32).map(|i| i * 31 % vocab as i32).collect();
    let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [batch * len]), &device);
    let shape = AttentionShape { batch_size: batch, seq_len: len, offset: 0, heads, kv_heads: heads, head_dim: d / heads };
    let positions = Positions { len, offset: 0 };
    let norm = |x: &Tensor<2>, w: &Tensor<2>| kernels::rms_norm(x.clone(), w.clone().reshape([d]), 1e-5);
    let step = || {
        let mut x = kernels::embedding(table.clone(), ids.clone());
        for Block(w) in &blocks {
            let y = norm(&x, &w[0]);
            let [q, k, v] = [2, 3, 4].map(|i| kernels::linear(y.clone(), w[i].clone()));
            let [q, k] = [q, k].map(|t| kernels::rope(t, rotations(), rotations(), positions));
            x = kernels::residual_add(kernels::linear(kernels::attention(q, k, v, None, shape), w[5].clone()), x);
            let y = norm(&x, &w[1]);
            let [gate, up] = [6, 7].map(|i| kernels::linear(y.clone(), w[i].clone()));
            x = kernels::residual_add(kernels::linear(kernels::swiglu(gate, up), w[8].clone()), x);
        }
        let loss = kernels::head_loss(norm(&x, &blocks[0].0[0]), table.clone(), ids.clone(), 512) * (1.0 / 512.0);
        let shown = loss.clone().inner();
        let grads = loss.backward();
        let all = blocks.iter().flat_map(|b| &b.0).chain([&table]);
        let grads: Vec<Tensor<2>> = all.map(|w| w.grad(&grads).expect("a gradient")).collect();
        wait(grads[grads.len() - 1].clone());
        block_on(shown.into_data_async()).unwrap().try_to_vec::<f32>().unwrap()[0]
    };
    for i in 0..6 {
        let (start, cpu, launched) = (Instant::now(), cpu_secs(), kernels::launch::dispatches());
        let loss = step();
        let launched = kernels::launch::dispatches() - launched;
        println!("step {i}: loss {loss:.4}, {:.2} s, cpu {:.2} s, {launched} dispatches", start.elapsed().as_secs_f64(), cpu_secs() - cpu);
    }
}

#[test]
#[ignore = "a measurement"]
fn op_speed() {
    let Some(device) = gpu() else { return };
    let device = device.autodiff();
    let make = |rows: usize, columns: usize| {
        Tensor::<2>::from_data(TensorData::new(noise(rows * columns, 7), [rows, columns]), &device).require_grad()
    };
    let (n, d, ffn, vocab) = (512, 128, 344, 1024);
    let ids: Vec<i32> = (0..n as i32).map(|i| i * 31 % vocab).collect();
    let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [n]), &device);
    let (x, hidden, table) = (make(n, d), make(n, ffn), make(vocab as usize, d));
    let (w, up, down) = (make(d, d), make(ffn, d), make(d, ffn));
    let shape = AttentionShape { batch_size: 4, seq_len: 128, offset: 0, heads: 4, kv_heads: 4, head_dim: 32 };
    type Op<'a> = Box<dyn Fn() -> Tensor<2> + 'a>;
    let ops: Vec<(&str, Op)> = vec![
        ("linear 128x128", Box::new(|| kernels::linear(x.clone(), w.clone()))),
        ("linear 344x128", Box::new(|| kernels::linear(x.clone(), up.clone()))),
        ("linear 128x344", Box::new(|| kernels::linear(hidden.clone(), down.clone()))),
        ("linear 1024x128", Box::new(|| kernels::linear(x.clone(), table.clone()))),
        ("attention", Box::new(|| kernels::attention(x.clone(), x.clone() * 1.0, x.clone() * 1.0, None, shape))),
        ("rms_norm", Box::new(|| kernels::rms_norm(x.clone(), w.clone().narrow(0, 0, 1).reshape([d]), 1e-5))),
        ("swiglu", Box::new(|| kernels::swiglu(hidden.clone(), hidden.clone() * 1.0))),
        ("embedding", Box::new(|| kernels::embedding(table.clone(), ids.clone()))),
        ("head_loss", Box::new(|| kernels::head_loss(x.clone(), table.clone(), ids.clone(), n).reshape([1, 1]))),
        ("nothing", Box::new(|| x.clone() * 2.0)),
    ];
    for (name, op) in ops {
        let forward = || wait(op().inner());
        let both = || {
            let grads = op().sum().backward();
            let leaves = [&x, &hidden, &table, &w, &up, &down];
            leaves.iter().filter_map(|t| t.grad(&grads)).for_each(wait);
        };
        let time = |run: &dyn Fn()| {
            run();
            let cpu = cpu_secs();
            for _ in 0..4 {
                run();
            }
            (cpu_secs() - cpu) / 4.0 * 1e3
        };
        println!("{name:16} forward {:.0} ms, with backward {:.0} ms of CPU", time(&forward), time(&both));
    }
}

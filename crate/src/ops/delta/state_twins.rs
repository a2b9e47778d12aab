//! Twins of the kernels that compute with the states between chunks.

use super::CHUNK;
use super::params::{ReadParams, ScanParams, ThroughParams};
use super::twins::Place;
use crate::gpu::Words;

pub(super) fn read([x, s, w]: [&[u32]; 3], [y]: [&mut [u32]; 1], p: &ReadParams) {
    for place in Place::all(p.n, p.len, p.heads) {
        let head = p.first + place.head * p.own / p.heads * p.inner;
        let state = (place.sequence * p.states + place.chunk) * p.heads + place.head;
        for t in 0..place.rows {
            let at = (place.base + t) * p.width + head;
            for c in 0..p.dim {
                let sum: f64 = (0..p.inner)
                    .map(|l| {
                        let inside = if p.turned {
                            l * p.dim + c
                        } else {
                            c * p.inner + l
                        };
                        x.wide(at + l) * s.wide(state * p.dim * p.inner + inside)
                    })
                    .sum();
                let to = place.at(t) * p.dim + c;
                let before = if p.add { y.wide(to) } else { 0.0 };
                y.set(to, before + f64::from(p.factor) * w.wide(place.at(t)) * sum);
            }
        }
    }
}

pub(super) fn scan(
    [w, keys, start, end, initial]: [&[u32]; 5],
    [y, states]: [&mut [u32]; 2],
    p: &ScanParams,
) {
    let (key, value) = (p.key_dim, p.value_dim);
    let chunks = p.len.div_ceil(CHUNK);
    for place in Place::all(p.n, p.len, p.heads) {
        let state = |after: usize| {
            ((place.sequence * (chunks + 1) + place.chunk + after) * p.heads + place.head)
                * value
                * key
        };
        if place.chunk == 0 {
            let from = (place.sequence * p.heads + place.head) * value * key;
            for i in 0..value * key {
                states[state(0) + i] = if p.carried { initial[from + i] } else { 0 };
            }
        }
        for t in 0..place.rows {
            for e in 0..value {
                let at = place.at(t);
                let read: f64 = (0..key)
                    .map(|l| w.wide(at * key + l) * states.wide(state(0) + e * key + l))
                    .sum();
                y.set(at * value + e, y.wide(at * value + e) - read);
            }
        }
        let head = place.head * p.key_heads / p.heads * key;
        let wide = p.key_heads * key;
        let decay = start.wide(place.at(place.rows - 1));
        for e in 0..value {
            for l in 0..key {
                let added: f64 = (0..place.rows)
                    .map(|t| {
                        let at = place.at(t);
                        let k = keys.wide((place.base + t) * wide + head + l);
                        end.wide(at) * y.wide(at * value + e) * k
                    })
                    .sum();
                let before = states.wide(state(0) + e * key + l);
                states.set(state(1) + e * key + l, decay * before + added);
            }
        }
    }
}

pub(super) fn scan_backward(
    [w, qk, start, end, dout]: [&[u32]; 5],
    [y, dstates]: [&mut [u32]; 2],
    p: &ScanParams,
) {
    let (key, value) = (p.key_dim, p.value_dim);
    let wide = 2 * p.key_heads * key;
    let mut places: Vec<Place> = Place::all(p.n, p.len, p.heads).collect();
    places.reverse();
    let mut state = vec![vec![0.0; value * key]; p.n / p.len * p.heads];
    for place in places {
        let own = &mut state[place.sequence * p.heads + place.head];
        let query = place.head * p.key_heads / p.heads * key;
        let keys = query + p.key_heads * key;
        for t in 0..place.rows {
            let at = place.at(t);
            for e in 0..value {
                let read: f64 = (0..key)
                    .map(|l| qk.wide((place.base + t) * wide + keys + l) * own[e * key + l])
                    .sum();
                y.set(at * value + e, y.wide(at * value + e) + end.wide(at) * read);
            }
        }
        let chunks = p.len.div_ceil(CHUNK);
        let to = ((place.sequence * chunks + place.chunk) * p.heads + place.head) * value * key;
        let decay = start.wide(place.at(place.rows - 1));
        for e in 0..value {
            for l in 0..key {
                dstates.set(to + e * key + l, own[e * key + l]);
                let added: f64 = (0..place.rows)
                    .map(|t| {
                        let at = place.at(t);
                        let q = qk.wide((place.base + t) * wide + query + l);
                        let read = start.wide(at) * dout.wide(at * value + e) * q;
                        read - y.wide(at * value + e) * w.wide(at * key + l)
                    })
                    .sum();
                own[e * key + l] = decay * own[e * key + l] + added;
            }
        }
    }
}

pub(super) fn through(
    [states, dstates, start]: [&[u32]; 3],
    [y]: [&mut [u32]; 1],
    p: &ThroughParams,
) {
    let chunks = p.len.div_ceil(CHUNK);
    for (number, place) in Place::all(p.n, p.len, p.heads).enumerate() {
        let before =
            ((place.sequence * (chunks + 1) + place.chunk) * p.heads + place.head) * p.size;
        let sum: f64 = (0..p.size)
            .map(|i| states.wide(before + i) * dstates.wide(number * p.size + i))
            .sum();
        y.set(number, start.wide(place.at(place.rows - 1)) * sum);
    }
}

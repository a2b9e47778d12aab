//! Digests compared with vectors that a Python program made (line 26 of ./README.md), and the differences that they detect.

use std::collections::BTreeMap;

use serde_json::Value;
use tabtune::formats::{Digest, Hasher};
use tabtune::state::{
    Identity, ModelStateGroupAssignment, StatedDigests, TokenizerRecord, assignment_digest,
    bundle_digest, canonical, leaf, optimizer_digest, state_digest, template_digest,
    tokenizer_digest, weights_digest,
};

use super::vectors::{Recorded, hex, recorded, vectors};

fn stated(value: &Value) -> Digest {
    Digest::from_hex(value.as_str().unwrap()).unwrap()
}

fn leaf_of(one: &Recorded) -> Digest {
    // In two pieces, as a tensor that is read piece by piece.
    let mut payload = Hasher::new();
    let (head, tail) = one.bytes.split_at(one.bytes.len() / 2);
    payload.update(head);
    payload.update(tail);
    leaf(
        &one.tensor.state_key,
        &one.tensor.dtype,
        &one.tensor.shape,
        payload.finish(),
    )
}

/// Returns the leaves of a list of tensors by key, each compared with the recorded one.
fn leaves(list: &Value) -> BTreeMap<String, Digest> {
    let one = |one: Recorded| {
        let found = leaf_of(&one);
        assert_eq!(found.to_string(), one.leaf, "{}", one.tensor.state_key);
        assert_eq!(one.tensor.byte_len(), Some(one.bytes.len() as u64));
        (one.tensor.state_key, found)
    };
    recorded(list).into_iter().map(one).collect()
}

/// Returns the digests of weights, optimizer and groups of state G.
fn of_state_g() -> [Digest; 3] {
    let vector = &vectors()["vector2"];
    let groups: Vec<ModelStateGroupAssignment> =
        serde_json::from_value(vector["groups"].clone()).unwrap();
    let [parameters, state] = ["parameters", "state"].map(|name| leaves(&vector[name]));
    [
        weights_digest(&parameters),
        optimizer_digest(&state),
        assignment_digest(&groups).unwrap(),
    ]
}

/// Line 26 of ./README.md.
#[test]
fn portable_digests_of_vector_1() {
    let vector = &vectors()["vector1"];
    assert_eq!(
        weights_digest(&leaves(&vector["tensors"])),
        stated(&vector["weights_digest"])
    );
}

/// Line 26 of ./README.md.
#[test]
fn portable_digests_of_vector_2() {
    let vector = &vectors()["vector2"];
    let names = ["weights_digest", "optimizer_digest", "assignment_digest"];
    let found = of_state_g();
    assert_eq!(found, names.map(|name| stated(&vector[name])));
    let [weights, optimizer, assignment] = found;
    assert_eq!(
        state_digest(weights, optimizer, assignment),
        stated(&vector["state_digest"])
    );
    let none = BTreeMap::new();
    let empty = [
        weights_digest(&none),
        optimizer_digest(&none),
        assignment_digest(&[]).unwrap(),
    ];
    assert_eq!(empty, names.map(|name| stated(&vector["empty"][name])));
    // The text under the assignment's digest, which does not include the residency.
    let mut groups: Vec<ModelStateGroupAssignment> =
        serde_json::from_value(vector["groups"].clone()).unwrap();
    for group in &mut groups {
        (group.residency, group.residency_policy) = (None, None);
    }
    assert_eq!(
        canonical(&groups).unwrap(),
        vector["assignment_text"].as_str().unwrap()
    );
    assert_eq!(assignment_digest(&groups).unwrap(), assignment);
    groups.reverse();
    assert_ne!(
        assignment_digest(&groups).unwrap(),
        assignment,
        "the order of groups counts"
    );
}

/// Line 26 of ./README.md.
#[test]
fn portable_digests_of_vector_3() {
    let vector = &vectors()["vector3"];
    let entries = |name: &str| {
        let entries = vector[name].as_object().unwrap().iter();
        entries
            .map(|(name, bytes)| (name.clone(), hex(bytes)))
            .collect::<BTreeMap<_, _>>()
    };
    let record: TokenizerRecord =
        serde_json::from_str(vector["record_text"].as_str().unwrap()).unwrap();
    assert_eq!(
        canonical(&record).unwrap(),
        vector["record_text"].as_str().unwrap()
    );
    let assets = entries("assets_hex")
        .into_iter()
        .map(|(name, bytes)| (name, Digest::of(&bytes)))
        .collect();
    let tokenizer = tokenizer_digest(&assets, &record).unwrap();
    assert_eq!(tokenizer, stated(&vector["tokenizer_digest"]));
    let templates = entries("templates_hex")
        .into_iter()
        .map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap()))
        .collect();
    let template = template_digest(&templates);
    assert_eq!(template, stated(&vector["template_digest"]));

    let mut identity: Identity = serde_json::from_value(vector["identity"].clone()).unwrap();
    let [weights, optimizer, assignment] = of_state_g().map(Some);
    let whole = StatedDigests {
        weights,
        optimizer,
        assignment,
        tokenizer: Some(tokenizer),
        template: Some(template),
        ..StatedDigests::default()
    };
    assert_eq!(
        bundle_digest(&identity, &whole),
        stated(&vector["bundle_digest"])
    );
    let part = StatedDigests {
        weights,
        tokenizer: Some(tokenizer),
        ..StatedDigests::default()
    };
    assert_eq!(
        bundle_digest(&identity, &part),
        stated(&vector["bundle_digest_weights_only"])
    );
    identity.checkpoint_ref = Some("opfs:run/7".to_string());
    assert_eq!(
        bundle_digest(&identity, &whole),
        stated(&vector["bundle_digest_with_ref"])
    );
}

/// Line 28 of ./README.md: any bit, and the border between two names.
#[test]
fn portable_digests_tell_bits_and_names_apart() {
    let vector = &vectors()["vector2"];
    for (list, digest, name) in [
        (
            "parameters",
            weights_digest as fn(&_) -> _,
            "weights_digest",
        ),
        ("state", optimizer_digest, "optimizer_digest"),
    ] {
        for at in 0..recorded(&vector[list]).len() {
            let mut all = recorded(&vector[list]);
            for bit in 0..8 * all[at].bytes.len() {
                all[at].bytes[bit / 8] ^= 1 << (bit % 8);
                let leaves = all
                    .iter()
                    .map(|one| (one.tensor.state_key.clone(), leaf_of(one)))
                    .collect();
                assert_ne!(
                    digest(&leaves),
                    stated(&vector[name]),
                    "{list}, tensor {at}, bit {bit}"
                );
                all[at].bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
    let payload = Digest::of(&[0; 4]);
    let of = |names: [&str; 2]| {
        weights_digest(
            &names
                .map(|name| (name.to_string(), leaf(name, "F32", &[1], payload)))
                .into(),
        )
    };
    assert_ne!(of(["a|b", "c"]), of(["a", "b|c"]));
    // A name cannot merge with its dtype, nor a dimension with the next.
    assert_ne!(
        leaf("aF32", "F32", &[1], payload),
        leaf("a", "F32F32", &[1], payload)
    );
    assert_ne!(
        leaf("a", "F32", &[1, 4], payload),
        leaf("a", "F32", &[4, 1], payload)
    );
    assert_ne!(
        leaf("a", "F32", &[], payload),
        leaf("a", "F32", &[1], payload)
    );
}

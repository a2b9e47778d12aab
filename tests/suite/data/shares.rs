//! Shares: of files by their weights over epochs, of rows that are kept for evaluation.

use tabtune::config::{DataSettings, TrainConfig};
use tabtune::data::{DataFile, DataSource, Dataset, Loader};
use tabtune::tokenizer::Tokenizer;

use super::super::tokenizer::byte_level;

/// Reads two files, of rows whose first token is that of `a` or of `b`.
fn two(tokenizer: &Tokenizer, a: usize, b: usize) -> Dataset {
    let rows = |letter: char, count: usize| -> String {
        (0..count)
            .map(|row| format!("{{\"text\": \"{letter} {row}\"}}\n"))
            .collect()
    };
    let (a, b) = (rows('a', a), rows('b', b));
    let files: [&dyn DataSource; 2] = [
        &DataFile {
            name: "a",
            bytes: a.as_bytes(),
        },
        &DataFile {
            name: "b",
            bytes: b.as_bytes(),
        },
    ];
    Dataset::read(
        &files,
        Ok::<_, tabtune::Error>(tokenizer),
        &DataSettings::default(),
    )
    .unwrap()
}

#[test]
fn files_come_by_their_weights_over_epochs() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let first = tokenizer.encode("b").unwrap()[0] as i32;
    for (rows, weight, epochs, expected) in [
        (10, 0.04, 50, 20),
        (10, 0.25, 3, 8),
        (3, 0.1, 20, 6),
        (7, 1.3, 10, 91),
        (1, 0.125, 40, 5),
        (4, 2.0, 3, 24),
    ] {
        let data = two(&tokenizer, 10, rows);
        for packing in [false, true] {
            let config = TrainConfig {
                batch_size: 1,
                seq_len: 16,
                packing,
                epochs: Some(f64::from(epochs)),
                data_weights: vec![1.0, weight],
                ..TrainConfig::default()
            };
            let config = config.with_steps_of(&data).unwrap();
            if !packing {
                assert_eq!(
                    config.steps,
                    10 * epochs as u64 + expected as u64,
                    "{rows} by {weight}"
                );
            }
            let mut loader = Loader::for_run(&data, &config).unwrap();
            let mut come = 0;
            for epoch in 0..epochs as u64 {
                while loader.state().epoch == epoch
                    && (loader.state().cursor as usize) < loader.items_per_epoch()
                {
                    let resumed = {
                        let mut other = Loader::for_run(&data, &config).unwrap();
                        other.restore(&data, loader.state()).unwrap();
                        other.next(&data).unwrap()
                    };
                    let batch = loader.next(&data).unwrap();
                    assert_eq!(resumed, batch, "a resume goes on with the same");
                    let starts: Vec<i32> =
                        batch.document_starts.clone().unwrap_or_else(|| vec![0; 16]);
                    let begins =
                        |at: &usize| starts[*at] as usize == *at && batch.inputs[*at] == first;
                    come += (0..16).filter(begins).count();
                }
                let after = ((epoch + 1) as f64 * rows as f64 * weight).round() as usize;
                assert_eq!(
                    come,
                    after,
                    "{rows} by {weight} after {} epochs, packing: {packing}",
                    epoch + 1
                );
                // The next epoch begins with the next batch.
                if loader.state().epoch == epoch {
                    let mut state = loader.state();
                    (state.epoch, state.cursor) = (epoch + 1, 0);
                    loader.restore(&data, state).unwrap();
                }
            }
            assert_eq!(come, expected);
        }
    }
}

#[test]
fn a_share_of_nothing_is_reported() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let data = two(&tokenizer, 10, 10);
    let told = |weight: f64, epochs: f64| {
        let config = TrainConfig {
            batch_size: 1,
            seq_len: 16,
            packing: false,
            epochs: Some(epochs),
            data_weights: vec![1.0, weight],
            ..TrainConfig::default()
        };
        let config = config.with_steps_of(&data).unwrap();
        let report = data.report(&config, &Loader::for_run(&data, &config).unwrap());
        report
            .warnings
            .into_iter()
            .filter(|warning| warning.code == "data.share")
            .map(|warning| warning.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(0.04, 1.0).len(), 1);
    assert!(
        told(0.04, 1.0)[0].starts_with("no example of b"),
        "{:?}",
        told(0.04, 1.0)
    );
    assert!(told(0.04, 2.0).is_empty() && told(0.04, 50.0).is_empty() && told(1.0, 1.0).is_empty());
    assert_eq!(told(0.004, 12.0).len(), 1);
    assert!(told(0.004, 13.0).is_empty());
}

#[test]
fn rows_for_evaluation_are_their_share_in_whole_rows() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    for count in [1usize, 2, 3, 4, 10, 30, 100] {
        let rows = "{\"text\": \"a b\"}\n".repeat(count);
        for hundredths in 0..100usize {
            let settings = DataSettings {
                validation_fraction: hundredths as f64 / 100.0,
                ..DataSettings::default()
            };
            let data = Dataset::read(
                &[&DataFile {
                    name: "a",
                    bytes: rows.as_bytes(),
                }],
                Ok::<_, tabtune::Error>(&tokenizer),
                &settings,
            )
            .unwrap();
            // ⌊(2·count·hundredths + 100) / 200⌋ is the rounded share; one row is left to train on.
            let expected = ((2 * count * hundredths + 100) / 200).min(count - 1);
            let config = TrainConfig {
                seq_len: 16,
                batch_size: 1,
                ..TrainConfig::default()
            };
            let report = data.report(&config, &Loader::for_run(&data, &config).unwrap());
            assert_eq!(report.validation, expected, "{hundredths} % of {count}");
        }
    }
    let of_text = |share: f64| {
        Dataset::from_tokens((0..1000).collect(), share)
            .unwrap()
            .validation_tokens()
    };
    assert_eq!([0.1, 0.7, 0.8, 0.9].map(of_text), [100, 700, 800, 900]);
}

#[test]
fn a_share_that_keeps_no_row_for_evaluation_is_reported() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    for (count, share, told) in [
        (10, 0.01, Some("0.01 of 10 rows")),
        (10, 0.04, Some("0.04 of 10 rows")),
        (1, 0.5, Some("a single row")),
        (10, 0.05, None),
        (10, 0.0, None),
        (1, 0.0, None),
    ] {
        let rows = "{\"text\": \"a b\"}\n".repeat(count);
        let settings = DataSettings {
            validation_fraction: share,
            ..DataSettings::default()
        };
        let data = Dataset::read(
            &[&DataFile {
                name: "a",
                bytes: rows.as_bytes(),
            }],
            Ok::<_, tabtune::Error>(&tokenizer),
            &settings,
        )
        .unwrap();
        let found = data
            .reading_warnings()
            .into_iter()
            .find(|warning| warning.code == "data.validation.none");
        assert_eq!(found.is_some(), told.is_some(), "{share} of {count}");
        assert!(
            found.is_none_or(|found| found.message.contains(told.unwrap())),
            "{share} of {count}"
        );
        assert_eq!(
            data.validation_tokens() == 0,
            told.is_some() || share == 0.0,
            "{share} of {count}"
        );
    }
}

#[test]
fn a_share_may_leave_the_first_epochs_empty() {
    let tokenizer = Tokenizer::from_parts(byte_level("gpt-2")).unwrap();
    let rows = "{\"text\": \"a b\"}\n".repeat(10);
    let file = DataFile {
        name: "a",
        bytes: rows.as_bytes(),
    };
    let data = Dataset::read(
        &[&file],
        Ok::<_, tabtune::Error>(&tokenizer),
        &DataSettings::default(),
    )
    .unwrap();
    let config = |epochs: Option<f64>, packing: bool| TrainConfig {
        batch_size: 1,
        seq_len: 16,
        packing,
        epochs,
        data_weights: vec![0.04],
        ..TrainConfig::default()
    };
    let settled = config(Some(50.0), false).with_steps_of(&data).unwrap();
    assert_eq!(settled.steps, 20);
    let mut loader = Loader::for_run(&data, &settled).unwrap();
    for _ in 0..settled.steps {
        loader.next(&data).unwrap();
    }
    assert_eq!(loader.state().epoch, 48);
    assert!(config(Some(50.0), true).with_steps_of(&data).unwrap().steps == 20);
    assert!(
        data.report(&settled, &loader)
            .warnings
            .iter()
            .all(|warning| warning.code != "data.share")
    );
    for epochs in [None, Some(1.0)] {
        assert_eq!(
            config(epochs, false)
                .with_steps_of(&data)
                .and_then(|config| Loader::for_run(&data, &config))
                .map(|_| ())
                .unwrap_err()
                .code(),
            "config.invalid"
        );
    }
}

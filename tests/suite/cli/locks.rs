//! The lock of an output folder: a file of somebody else under its name stays.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::mounts::Account;
use super::*;

/// Returns the options of a run of two steps with a checkpoint in `out`.
fn train<'a>(config: &'a str, data: &'a str, out: &'a str) -> Vec<&'a str> {
    [&short(config, data)[..], &["--stop-at", "2", "--out", out]].concat()
}

#[test]
fn a_file_of_somebody_else_under_the_name_of_the_lock_stays() {
    let place = folder("lock-name");
    let (config, data) = tiny(&place);
    let precious = write(&place, "precious", "of the user");
    let run = place.join("run");
    succeed(&train(&config, &data, &text(&run)));
    for out in [&run, &place.join("new")] {
        fs::create_dir_all(out).unwrap();
        let lock = out.join(".tabtune.lock");
        let refused = |told: &str| {
            let (code, message) = refuse(&train(&config, &data, &text(out)));
            assert!(
                code == "output.occupied" && message.contains(".tabtune.lock of somebody else"),
                "{told}: {code} {message}"
            );
        };
        symlink(&precious, &lock).unwrap();
        refused("a link");
        assert_eq!(fs::read_link(&lock).unwrap(), Path::new(&precious));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "of the user");
        fs::remove_file(&lock).unwrap();
        for own in [
            "a note",
            "a note that is longer than the mark of a process",
            "zzzzzzzzzzzzzzzzzzzzzzzz",
        ] {
            fs::write(&lock, own).unwrap();
            refused(own);
            assert_eq!(fs::read_to_string(&lock).unwrap(), own);
        }
        fs::remove_file(&lock).unwrap();
        fs::create_dir(&lock).unwrap();
        refused("a folder");
        fs::remove_dir(&lock).unwrap();
        // The lock of a process that was killed, before and after it had written its mark.
        for left in ["", "0000002a0123456789abcdef"] {
            fs::write(&lock, left).unwrap();
            succeed(&train(&config, &data, &text(out)));
            assert!(!lock.exists(), "{left:?}");
        }
    }
}

#[test]
fn a_lock_that_another_user_left_is_named_with_the_way_out() {
    let place = folder("lock-of-another");
    let (config, data) = tiny(&place);
    let Some(account) = Account::new(Path::new(&config), "the lock of another user") else {
        return;
    };
    let out = place.join("run");
    fs::create_dir(&out).unwrap();
    account.give(&out);
    let lock = out.join(".tabtune.lock");
    fs::write(&lock, "0000002a0123456789abcdef").unwrap();
    fs::set_permissions(
        &lock,
        fs::Permissions::from_mode(if account.under.is_empty() {
            0o000
        } else {
            0o644
        }),
    )
    .unwrap();
    let binary = text(binary());
    let out = text(&out);
    let args: Vec<&str> = account
        .under
        .iter()
        .map(String::as_str)
        .chain([&*binary])
        .chain(train(&config, &data, &out))
        .collect();
    let ended = Command::new(args[0]).args(&args[1..]).output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(
        told.contains("the lock of another user")
            && told.contains("remove this file")
            && told.contains("[sink.write]"),
        "{told}"
    );
    assert!(lock.exists());
}

//! File systems that a test mounts in a namespace of its own, and an account to which file permissions apply.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use super::*;

/// A file system in memory, mounted at a folder. Commands started with `inside` see it there; the test sees it at [`Mount::seen`].
pub(super) struct Mount {
    holder: Child,
    pub inside: Vec<String>,
}

impl Mount {
    /// Mounts `bytes` of memory. If this is not allowed, prints that `what` is skipped and returns `None`.
    pub fn new(folder: &Path, bytes: u64, what: &str) -> Option<Self> {
        Self::with(folder, &format!("size={bytes}"), what)
    }

    /// Mounts a file system in memory with these options, as [`Mount::new`] does.
    pub fn with(folder: &Path, options: &str, what: &str) -> Option<Self> {
        const SCRIPT: &str =
            r#"mount -t tmpfs -o "$2",mode=755 tmpfs "$1" && echo mounted && exec cat"#;
        // As root, or otherwise as root of a user namespace.
        for (unshare, enter) in [("-m", "-m"), ("-rm", "-U -m --preserve-credentials")] {
            let args =
                [unshare, "sh", "-c", SCRIPT, "sh", &text(folder), options].map(str::to_string);
            let started = Command::new("unshare")
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut holder) = started else { continue };
            let mut line = String::new();
            BufReader::new(holder.stdout.as_mut().unwrap())
                .read_line(&mut line)
                .unwrap();
            let target = holder.id().to_string();
            let inside = ["nsenter", "-t", &target]
                .into_iter()
                .chain(enter.split(' '))
                .map(str::to_string)
                .collect();
            let mount = Self { holder, inside };
            if line == "mounted\n" {
                return Some(mount);
            }
        }
        println!("skipped: {what}: no file system can be mounted here");
        None
    }

    /// Returns the path at which the test finds `path`.
    pub fn seen(&self, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{}", self.holder.id(), path.display()))
    }

    /// Fills the file system that contains `folder` with a file of the user, so that `free` bytes remain.
    pub fn fill(&self, folder: &Path, free: u64) {
        let mut file = fs::File::create_new(self.seen(folder).join("filler")).unwrap();
        while file.write_all(&[7; 4096]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(free)).unwrap();
    }

    /// Makes the file system read-only.
    pub fn close(&self, folder: &Path) {
        let args = [
            &self.inside[..],
            &["mount", "-o", "remount,bind,ro", &text(folder)].map(str::to_string),
        ]
        .concat();
        assert!(
            Command::new(&args[0])
                .args(&args[1..])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Account for a command to which file permissions apply: that of the test, or `nobody` instead of root.
pub(super) struct Account {
    uid: Option<u32>,
    pub under: Vec<String>,
}

impl Account {
    /// If no such account can read `file` and start the command, prints that `what` is skipped and returns `None`.
    pub fn new(file: &Path, what: &str) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        const NOBODY: u32 = 65534;
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let under = if is_root {
            vec![
                "setpriv".into(),
                format!("--reuid={NOBODY}"),
                "--clear-groups".into(),
            ]
        } else {
            Vec::new()
        };
        let account = Self {
            uid: is_root.then_some(NOBODY),
            under,
        };
        let works = |command: &[&str]| {
            let args: Vec<&str> = account
                .under
                .iter()
                .map(String::as_str)
                .chain(command.iter().copied())
                .collect();
            Command::new(args[0])
                .args(&args[1..])
                .output()
                .is_ok_and(|output| output.status.success())
        };
        if works(&[&text(binary()), "--version"]) && works(&["test", "-r", &text(file)]) {
            return Some(account);
        }
        println!("skipped: {what}: no account that permissions hold for");
        None
    }

    /// Makes `folder` belong to this account.
    pub fn give(&self, folder: &Path) {
        if self.uid.is_some() {
            std::os::unix::fs::chown(folder, self.uid, None).unwrap();
        }
    }
}

//! Locations of the table, each made again for each command.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::mounts::{Account, Mount};
use super::super::places::{Contents, contents, put_foreign};
use super::super::*;
use Kind::*;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    New,
    Empty,
    Checkpoint,
    Export,
    CheckpointAndForeign,
    ExportAndForeign,
    ForeignManifest,
    File,
    Link,
    DanglingLink,
    MountPoint,
    InClosedParent,
    NewInClosedParent,
    ReadOnly,
    Full,
    NearlyFull,
    /// 80 KiB are free: room for an export, but not for a checkpoint.
    Small,
    Spaces,
    LongName,
}

/// Purpose of a location, which is one column of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Use {
    Checkpoints,
    InPlace,
    Folder,
    OneFile,
}

/// One location: the output path for the command, and the paths that the test sees.
pub(super) struct Place {
    pub out: PathBuf,
    /// Folder that contains the output's files.
    pub home: PathBuf,
    /// Folder in which nothing else may change.
    pub around: PathBuf,
    /// Program and arguments that start the command.
    pub start: Vec<String>,
    /// Contents before the command, which must stay, except for a checkpoint that is replaced.
    pub before: Contents,
    /// Keeps the file system mounted.
    _mount: Option<Mount>,
}

/// Inputs of the commands, made once.
pub(super) struct Inputs {
    pub config: String,
    pub data: String,
    /// Checkpoint of half a run.
    pub half: String,
    pub tuned: String,
    pub adapter: String,
    pub exported: String,
}

pub(super) fn inputs() -> &'static Inputs {
    static MADE: OnceLock<Inputs> = OnceLock::new();
    MADE.get_or_init(|| {
        let place = folder("inputs");
        let at = |name: &str| text(&place.join(name));
        let (config, data) = tiny(&place);
        let (half, tuned, run, adapter, exported) = (
            at("half"),
            at("tuned"),
            at("lora"),
            at("adapter"),
            at("exported"),
        );
        let tune = [
            "train",
            "--model",
            &half,
            "--data",
            &data,
            "--device",
            "cpu",
            "--steps",
            "1",
            "--seq-len",
            "16",
            "--out",
        ];
        succeed(
            &[
                &short(&config, &data)[..],
                &["--stop-at", "2", "--out", &half],
            ]
            .concat(),
        );
        succeed(&[&tune[..], &[&tuned]].concat());
        succeed(
            &[
                &tune[..],
                &[
                    &run,
                    "--lora",
                    "--lora-r",
                    "2",
                    "--lora-targets",
                    "all-linear",
                ],
            ]
            .concat(),
        );
        succeed(&[
            "export",
            "--checkpoint",
            &run,
            "--format",
            "peft",
            "--to",
            &adapter,
        ]);
        succeed(&["export", "--checkpoint", &half, "--to", &exported]);
        Inputs {
            config,
            data,
            half,
            tuned,
            adapter,
            exported,
        }
    })
}

fn copy(from: &str, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Makes a location of this kind below `around`. If this machine does not allow it, prints that and returns `None`.
pub(super) fn make(kind: Kind, usage: Use, around: &Path) -> Option<Place> {
    let ending = if usage == Use::OneFile { ".gguf" } else { "" };
    let long = "n".repeat(200 - ending.len());
    let name = match kind {
        Spaces => " a place of mine ",
        LongName => &long,
        _ => "place",
    };
    let name = format!("{name}{ending}");
    let mut place = Place {
        out: around.join(&name),
        home: around.join(&name),
        around: around.to_path_buf(),
        start: Vec::new(),
        before: Contents::new(),
        _mount: None,
    };
    let what = format!("{kind:?}");
    // The checkpoint to resume is put into the location itself.
    let fill = |folder: &Path| {
        if usage == Use::InPlace {
            copy(&inputs().half, folder)
        }
    };
    let out = place.out.clone();
    match kind {
        New => {}
        Empty => fs::create_dir(&out).unwrap(),
        Checkpoint | CheckpointAndForeign => copy(&inputs().half, &out),
        Export | ExportAndForeign => copy(&inputs().exported, &out),
        ForeignManifest => {
            fs::create_dir(&out).unwrap();
            fs::write(
                out.join("checkpoint.json"),
                r#"{"format": "of somebody else", "files": []}"#,
            )
            .unwrap();
        }
        File => fs::write(&out, "of the user").unwrap(),
        Link => {
            place.home = around.join("disk");
            fs::create_dir(&place.home).unwrap();
            symlink(&place.home, &out).unwrap();
            fill(&place.home);
        }
        DanglingLink => symlink(around.join("absent"), &out).unwrap(),
        InClosedParent | NewInClosedParent => {
            let (account, parent) = (
                Account::new(Path::new(&inputs().config), &what)?,
                around.join("parent"),
            );
            place.out = parent.join(&name);
            place.home = place.out.clone();
            fs::create_dir(&parent).unwrap();
            if kind == InClosedParent {
                fs::create_dir(&place.out).unwrap();
                fill(&place.out);
                account.give(&place.out);
            }
            fs::set_permissions(&parent, Permissions::from_mode(0o555)).unwrap();
            place.start = account.under;
        }
        MountPoint | ReadOnly | Full | NearlyFull | Small => {
            let at = around.join("mounted");
            fs::create_dir(&at).unwrap();
            let mount = Mount::new(&at, 1 << 18, &what)?;
            // For a folder, the mount point itself is the location.
            place.out = if kind == MountPoint && usage != Use::OneFile {
                at.clone()
            } else {
                at.join(&name)
            };
            (place.home, place.around, place.start) = (
                mount.seen(&place.out),
                mount.seen(&at),
                mount.inside.clone(),
            );
            fill(&place.home);
            match kind {
                ReadOnly => mount.close(&at),
                Full => mount.fill(&at, 0),
                NearlyFull => mount.fill(&at, 12 << 10),
                Small => mount.fill(&at, 80 << 10),
                _ => {}
            }
            place._mount = Some(mount);
        }
        Spaces | LongName => fill(&out),
    }
    if matches!(
        kind,
        CheckpointAndForeign | ExportAndForeign | ForeignManifest
    ) {
        put_foreign(&out);
    }
    place.before = contents(&place.around);
    Some(place)
}

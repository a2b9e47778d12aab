//! Modules of a room form no circle of imports, and the rooms within `data` import in one direction.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Modules, Path, path};
use super::none;

/// Rooms within `data`: each imports from those before it.
const DATA: [&str; 3] = ["read", "chat", "batch"];

type Edges = BTreeMap<Path, BTreeSet<Path>>;

/// Returns the deepest module of a path, and what is left.
fn deepest<'a>(modules: &Modules, path: &'a [String]) -> Option<(Path, &'a [String])> {
    let lengths = (1..=path.len()).rev();
    let mut splits = lengths.map(|length| path.split_at(length));
    splits
        .find(|(module, _)| modules.0.contains_key(*module))
        .map(|(module, rest)| (module.to_vec(), rest))
}

/// Returns the modules of its own room that each module imports from, its descendants aside; a crate without rooms is one. A name that is given on
/// counts as where it is defined.
fn edges(modules: &Modules, rooms: bool) -> Edges {
    let all = modules.0.keys();
    let named: BTreeMap<&Path, _> = all.map(|me| (me, modules.named(me))).collect();
    let home = |mut path: Path| {
        path.pop_if(|last| last == "*");
        for _ in 0..8 {
            let (module, rest) = deepest(modules, &path)?;
            let given = rest.first().and_then(|name| {
                let mut imports = named[&module].0.iter();
                imports.find(|import| import.name == *name && import.path != path)
            });
            match given {
                Some(import) => path = [&import.path, &rest[1..]].concat(),
                None => return Some(module),
            }
        }
        None
    };
    let imported = |me: &Path| {
        let (imports, paths) = &named[me];
        let used = imports.iter().filter(|import| !import.public);
        let used = used.map(|import| &import.path).chain(paths);
        used.filter_map(|path| home(path.clone()))
            .filter(|other| (!rooms || other[0] == me[0]) && other != me && !other.starts_with(me))
            .collect()
    };
    named
        .keys()
        .map(|me| ((*me).clone(), imported(me)))
        .collect()
}

/// The circles of a graph, each as the modules on it: those that reach one another.
fn circles(edges: &Edges) -> Vec<BTreeSet<Path>> {
    let reach = |from: &Path| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(one) = next.pop() {
            next.extend(
                edges
                    .get(one)
                    .into_iter()
                    .flatten()
                    .filter(|other| seen.insert((*other).clone())),
            );
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<Path>> = edges.keys().map(|me| (me, reach(me))).collect();
    let on = reached.iter().filter(|(me, seen)| seen.contains(**me));
    let found: BTreeSet<BTreeSet<Path>> = on
        .map(|(me, seen)| {
            seen.iter()
                .filter(|other| reached[other].contains(*me))
                .cloned()
                .collect()
        })
        .collect();
    found.into_iter().collect()
}

fn shown(path: &Path) -> String {
    path.join("::")
}

/// Returns the imports within `data` from a room that comes later.
fn backwards(edges: &Edges) -> Vec<String> {
    let place = |path: &Path| {
        let room = path.get(1).filter(|_| path[0] == "data")?;
        DATA.iter().position(|known| known == room)
    };
    let all = edges.iter();
    all.flat_map(|(me, others)| others.iter().map(move |other| (me, other)))
        .filter(|(me, other)| place(me).is_some_and(|mine| Some(mine) < place(other)))
        .map(|(me, other)| format!("{} imports from {}", shown(me), shown(other)))
        .collect()
}

#[test]
fn circles_of_modules_and_steps_back_within_data_are_absent() {
    let found = |edges: &Edges| {
        let one = |circle: &BTreeSet<Path>| circle.iter().map(shown).collect::<Vec<_>>().join(", ");
        circles(edges).iter().map(one).collect::<Vec<_>>()
    };
    let of_crate = edges(&Modules::of("crate/src"), true);
    let rooms = of_crate.keys().filter(|path| path[0] == "data");
    let rooms: BTreeSet<_> = rooms.filter_map(|path| path.get(1)).collect();
    assert_eq!(rooms, BTreeSet::from(DATA.map(str::to_owned).each_ref()));
    let mut findings = [backwards(&of_crate), found(&of_crate)].concat();
    let crates = [
        "web/border/src",
        "web/core/src",
        "native-runner/src",
        "native-runner/dev",
        "native-runner/witness/src",
    ];
    let others = crates.map(|folder| edges(&Modules::of(folder), false));
    findings.extend(others.iter().flat_map(found));
    none(findings);
}

#[test]
fn circles_that_are_planted_are_found() {
    let planted = [
        ("room", "pub use a::A;\npub use b::B;"),
        ("room::a", "use super::B;\nuse crate::other::Thing;"),
        ("room::b", "use crate::room::{c, d::D};"),
        ("room::c", "fn f() { print!(\"{}\", crate::room::A); }"),
        ("room::d", "use std::rc::Rc; // use crate::room::b;"),
        ("other", "use crate::room::A;"),
        ("data::read", "use crate::data::batch::Batch;"),
        ("data::batch", "pub struct Batch;"),
    ];
    let planted = planted.map(|(name, code)| (name.to_owned(), code.to_owned()));
    let edges = edges(&Modules::parsed(planted.into_iter()), true);
    let expected: BTreeSet<Path> = ["room::a", "room::b", "room::c"].map(path).into();
    assert_eq!(
        circles(&edges),
        [expected],
        "by the front door, by a module, and by a path within a macro"
    );
    assert_eq!(backwards(&edges), ["data::read imports from data::batch"]);
}

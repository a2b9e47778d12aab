//! Pieces with equal scores. llama.cpp joins the leftmost of them first, which a list of merges can say only where they do not meet.

use std::collections::HashMap;

use super::parts::Ranked;

/// At most two pieces that have one part.
#[derive(Default)]
struct Results([Option<usize>; 2]);

impl Results {
    fn add(&mut self, piece: usize) {
        if !self.0.contains(&Some(piece))
            && let Some(place) = self.0.iter_mut().find(|place| place.is_none())
        {
            *place = Some(piece);
        }
    }

    fn other_than(&self, piece: usize) -> Option<usize> {
        self.0.into_iter().flatten().find(|found| *found != piece)
    }
}

/// Returns two pieces with the same score that compete for a part of a text, directly or by a better piece that one of them makes possible;
/// `ranked` holds every division of a piece, the best score first.
pub(super) fn meeting(ranked: &[Ranked<'_>]) -> Option<(usize, usize)> {
    // The group of each piece that has the score of another one, and the pieces of a group that begin or end with a part.
    let mut groups = HashMap::new();
    let mut beginnings: HashMap<(usize, usize), Results> = HashMap::new();
    let mut ends: HashMap<(usize, usize), Results> = HashMap::new();
    let equals = ranked.chunk_by(|a, b| a.0 == b.0).enumerate();
    for (group, equal) in equals.filter(|(_, equal)| equal.iter().any(|one| one.1 != equal[0].1)) {
        for &(score, piece, left, right, _) in equal {
            groups.insert(piece, (group, score));
            beginnings.entry((group, left)).or_default().add(piece);
            ends.entry((group, right)).or_default().add(piece);
        }
    }
    // The order of a map differs from run to run; the pair that is named does not.
    let direct = beginnings.iter().filter_map(|((group, part), begun)| {
        let ended = ends.get(&(*group, *part))?;
        let mut pieces = begun.0.into_iter().flatten();
        pieces.find_map(|piece| Some((piece, ended.other_than(piece)?)))
    });
    let ahead = |score: f32, piece: usize| {
        let (group, own) = groups.get(&piece)?;
        (score >= *own).then_some(*group)
    };
    let through = || {
        ranked.iter().find_map(|&(score, _, left, right, _)| {
            let before = || {
                let group = ahead(score, right)?;
                Some((right, ends.get(&(group, left))?.other_than(right)?))
            };
            let after = || {
                let group = ahead(score, left)?;
                Some((left, beginnings.get(&(group, right))?.other_than(left)?))
            };
            before().or_else(after)
        })
    };
    direct.min().or_else(through)
}

//! What a person probably meant: the known name nearest to a mistyped one.

/// Names longer than this are not compared; no name of ours is.
const LONGEST: usize = 80;

/// The candidate nearest to `wrong`, if it is near enough to be a slip: at most a third of the
/// letters changed (added, left out, replaced, or two neighbours swapped), case ignored.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: Vec<char> = wrong.to_lowercase().chars().collect();
    if wrong.len() > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| {
            let letters: Vec<char> = candidate.to_lowercase().chars().collect();
            let limit = (wrong.len().max(letters.len()) / 3).max(1);
            (edit_distance(&wrong, &letters), limit, candidate)
        })
        .filter(|(distance, limit, _)| distance <= limit)
        .min_by_key(|(distance, _, _)| *distance)
        .map(|(_, _, candidate)| candidate)
}

/// "did you mean `x`?", or nothing.
pub fn did_you_mean<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(wrong, candidates).map_or_else(String::new, |name| format!("did you mean `{name}`?"))
}

/// Help for a name that is not known: what was probably meant, then the names that are, led by
/// `title`, such as "known".
pub fn known<'a>(wrong: &str, title: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let guess = did_you_mean(wrong, names.iter().copied());
    let space = if guess.is_empty() { "" } else { " " };
    format!("{guess}{space}{title}: {}", names.join(", "))
}

/// Optimal string alignment distance: three rolling rows.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = last;
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_listed_behind_the_guess() {
        assert_eq!(
            known("h20", "known", ["h100", "h200"]),
            "did you mean `h200`? known: h100, h200"
        );
        assert_eq!(known("xyz", "there are", ["h100"]), "there are: h100");
    }

    #[test]
    fn slips_are_recognised() {
        let names = ["rtxpro6000x8", "rtxpro6000x8-flat", "h200"];
        assert_eq!(nearest("rtxpro600x8", names), Some("rtxpro6000x8"));
        assert_eq!(nearest("RTXPRO6000X8-falt", names), Some("rtxpro6000x8-flat"));
        assert_eq!(nearest("h20", names), Some("h200"));
        assert_eq!(nearest("dgx", names), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), names), None);
    }

    #[test]
    fn a_swap_counts_once() {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(edit_distance(&letters("sw12"), &letters("sw21")), 1);
        assert_eq!(edit_distance(&letters(""), &letters("abc")), 3);
    }
}

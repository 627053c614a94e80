//! Which share of a sweep a task of a Slurm array runs.

use crate::error::{Error, Result};

/// The share that Slurm's array variables name, index and count; nothing outside an array.
///
/// # Errors
/// [`Error::Request`] when the numbers of the array's tasks are no shares: each would run all cases, or
/// two the same.
pub(super) fn share(variable: impl Fn(&str) -> Option<String>) -> Result<Option<(u64, u64)>> {
    let name = |part: &str| format!("SLURM_ARRAY_TASK_{part}");
    let Some(id) = variable(&name("ID")) else { return Ok(None) };
    let number = |part: &str| variable(&name(part))?.parse::<u64>().ok();
    let found = || {
        let (id, count, least) = (id.parse::<u64>().ok()?, number("COUNT")?, number("MIN")?);
        // Left out by versions of Slurm that know no step.
        let step = number("STEP").unwrap_or(1);
        let index = |id: u64| {
            let from = id.checked_sub(least)?;
            (from.checked_rem(step)? == 0).then(|| from / step).filter(|&index| index < count)
        };
        // A list such as 1,3,7 has neither a step nor gaps of one size.
        let regular =
            number("MAX").is_none_or(|most| index(most).map(|last| last + 1) == Some(count));
        index(id)
            .filter(|_| regular && count <= super::sweep::SHARES_MAX)
            .map(|index| (index, count))
    };
    found().map(Some).ok_or_else(|| {
        let told = ["ID", "COUNT", "MIN", "MAX", "STEP"].map(|part| {
            let value = variable(&name(part));
            format!("{} {}", part.to_lowercase(), value.as_deref().unwrap_or("not set"))
        });
        Error::request(
            format!("this task of a Slurm array has no share of the cases: {}", told.join(", ")),
            "use an array such as 0-7, or 0-14:2, or say --shard INDEX/COUNT (0/1: all cases)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ID, COUNT, MIN, MAX and STEP; `-` for one that is not set.
    fn of(values: &str) -> Option<Option<(u64, u64)>> {
        let names = ["ID", "COUNT", "MIN", "MAX", "STEP"];
        let values: Vec<&str> = values.split(' ').collect();
        share(|name| {
            let at = names.iter().position(|part| name.ends_with(part))?;
            Some(values[at].to_owned()).filter(|value| value != "-")
        })
        .ok()
    }

    #[test]
    fn tasks_of_an_array_share_all_cases_and_none_runs_them_twice() {
        assert_eq!(of("- - - - -"), Some(None));
        assert_eq!(of("4 4 0 6 2"), Some(Some((2, 4))));
        assert_eq!(of("4 4 0 - 2"), Some(Some((2, 4))));
        assert_eq!(of("3 4 1 4 1"), Some(Some((2, 4))));
        assert_eq!(of("3 4 1 4 -"), Some(Some((2, 4))));
        // A step that it does not meet, a list, a number outside, and variables that are not there.
        for wrong in ["3 4 0 6 2", "3 3 1 7 1", "9 4 0 3 1", "1 4 2 5 1", "0 4 0 3 0"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        for wrong in ["0 - 0 3 1", "0 4 - 3 1", "x 4 0 3 1", "0 0 0 0 1"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}

//! What the rows of a sweep say together: a table, what is worth its price, the cheapest that meets a
//! target, and what each edit does.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{Error, Result};
use crate::units::{TIMES_US, is_time_us};

/// A row of a sweep, as its file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Row {
    /// Number of the case.
    pub case: u64,
    /// The machine.
    #[serde(default)]
    pub machine: String,
    /// The edits, `; ` between them; empty: none.
    #[serde(default)]
    pub edits: String,
    /// The implementation.
    pub algorithm: String,
    /// Bytes of the call; nothing where it could not be.
    pub bytes: Option<u64>,
    /// The seed, where there are some.
    pub seed: Option<u64>,
    /// A call, us; nothing where it could not be.
    #[serde(default, deserialize_with = "time")]
    pub us: Option<f64>,
    /// From a rank's arrival to its end, us, where ranks do not come together.
    #[serde(default, deserialize_with = "time")]
    pub in_place_us: Option<f64>,
    /// Of it, waiting for the last rank.
    #[serde(default, deserialize_with = "time")]
    pub waiting_us: Option<f64>,
    /// Why it could not be.
    pub error: Option<String>,
}

/// A time of a row, us.
fn time<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<f64>, D::Error> {
    let us = Option::<f64>::deserialize(from)?;
    match us.filter(|us| !is_time_us(*us)) {
        None => Ok(us),
        Some(us) => Err(serde::de::Error::custom(format!("{us} us is no time: {TIMES_US}"))),
    }
}

/// A machine with a list of edits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Build {
    /// The machine.
    pub machine: String,
    /// The edits, `; ` between them.
    pub edits: String,
}

/// The fastest implementation of a size on a build.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Best {
    /// A call, us.
    pub us: f64,
    /// By which implementation.
    pub algorithm: String,
}

/// A build that no other beats in both price and time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worth {
    /// Bytes of the call.
    pub bytes: u64,
    /// What it costs.
    pub price: f64,
    /// Which.
    pub build: Build,
    /// What it gives.
    pub best: Best,
}

/// What an edit does over all builds that differ in it alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The edit.
    pub edit: String,
    /// Pairs of builds and sizes compared.
    pub pairs: usize,
    /// Geometric mean of the fastest call's time with it over that without, less one.
    pub mean: f64,
    /// Least and most of them.
    pub range: [f64; 2],
}

/// The fastest call of every build and size; rows that could not be do not count.
#[derive(Clone, Debug, Default)]
pub struct Bests {
    found: BTreeMap<(u64, Build), Best>,
}

impl Bests {
    /// Takes a row in.
    pub fn take(&mut self, row: &Row) {
        let (Some(bytes), Some(us)) = (row.bytes, row.us) else { return };
        let build = Build { machine: row.machine.clone(), edits: row.edits.clone() };
        let best = || Best { us, algorithm: row.algorithm.clone() };
        let entry = self.found.entry((bytes, build)).or_insert_with(best);
        if us < entry.us {
            *entry = best();
        }
    }

    /// Builds by size that no other of that size beats in both price and time, cheapest first.
    ///
    /// # Errors
    /// An edit without a price, no row at all.
    pub fn worth(&self, prices: &Prices) -> Result<Vec<Worth>> {
        let mut all: Vec<Worth> = Vec::new();
        for ((bytes, build), best) in &self.found {
            let (bytes, price) = (*bytes, prices.of(build)?);
            all.push(Worth { bytes, price, build: build.clone(), best: best.clone() });
        }
        if all.is_empty() {
            return Err(Error::request("no row has a time", "every case failed: see their errors"));
        }
        all.sort_by(|a, b| {
            let order = a.bytes.cmp(&b.bytes).then(a.price.total_cmp(&b.price));
            order.then(a.best.us.total_cmp(&b.best.us))
        });
        let mut front: Vec<Worth> = Vec::new();
        for one in all {
            let beaten = |last: &Worth| last.bytes == one.bytes && last.best.us <= one.best.us;
            if !front.last().is_some_and(beaten) {
                front.push(one);
            }
        }
        Ok(front)
    }

    /// The cheapest build on which a call of `bytes` takes at most `most_us`.
    ///
    /// # Errors
    /// A size that no row has, and those of [`Bests::worth`].
    pub fn cheapest(&self, bytes: u64, most_us: f64, prices: &Prices) -> Result<Option<Worth>> {
        let front = self.worth(prices)?;
        if !front.iter().any(|one| one.bytes == bytes) {
            let mut sizes: Vec<u64> = front.iter().map(|one| one.bytes).collect();
            sizes.dedup();
            let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
            let help = format!("the rows have {}", sizes.join(", "));
            return Err(Error::request(format!("no row is of {bytes} bytes"), help));
        }
        let meets = |one: &Worth| one.bytes == bytes && one.best.us <= most_us;
        Ok(front.into_iter().find(meets))
    }

    /// What each edit does, the one that changes most first.
    pub fn effects(&self) -> Vec<Effect> {
        let mut ratios: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for ((bytes, build), with) in &self.found {
            let edits: Vec<&str> = build.edits.split("; ").filter(|e| !e.is_empty()).collect();
            for (at, &edit) in edits.iter().enumerate() {
                let mut rest = edits.clone();
                rest.remove(at);
                let rest = Build { machine: build.machine.clone(), edits: rest.join("; ") };
                if let Some(without) = self.found.get(&(*bytes, rest)) {
                    ratios.entry(edit).or_default().push(with.us / without.us);
                }
            }
        }
        let effect = |(edit, ratios): (&str, Vec<f64>)| {
            let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64;
            let end = |pick: fn(f64, f64) -> f64| ratios.iter().copied().reduce(pick);
            let range = [end(f64::min), end(f64::max)].map(|end| end.unwrap_or(1.0) - 1.0);
            Effect { edit: edit.to_owned(), pairs: ratios.len(), mean: mean.exp() - 1.0, range }
        };
        let mut effects: Vec<Effect> = ratios.into_iter().map(effect).collect();
        effects.sort_by(|a, b| b.mean.abs().total_cmp(&a.mean.abs()).then(a.edit.cmp(&b.edit)));
        effects
    }
}

/// Price tags of edits and machines, in whatever unit.
#[derive(Clone, Debug, Default)]
pub struct Prices(BTreeMap<String, f64>);

impl Prices {
    /// Reads tags such as `acs=on = 0` or `rtxpro6000x8-flat = 1200`.
    ///
    /// # Errors
    /// What is no tag, and two tags of one thing.
    pub fn parse(tags: &[String]) -> Result<Prices> {
        let mut prices = BTreeMap::new();
        for tag in tags {
            let parts = tag.rsplit_once(" = ");
            let number = |price: &str| {
                price.trim().parse::<f64>().ok().filter(|p| p.is_finite() && *p >= 0.0)
            };
            let read = parts.and_then(|(what, price)| Some((what.trim(), number(price)?)));
            let Some((what, price)) = read else {
                let help = "write WHAT = PRICE with blanks, such as \"link:gpus=gen5 = 400\"";
                return Err(Error::request(format!("`{tag}` is no price tag"), help));
            };
            if prices.insert(what.to_owned(), price).is_some() {
                return Err(Error::request(format!("`{what}` has two prices"), "leave one out"));
            }
        }
        Ok(Prices(prices))
    }

    /// The price of a build: its machine, nothing where that has no tag, and its edits.
    ///
    /// # Errors
    /// An edit without a tag, when there are tags at all; without any, each edit counts one.
    fn of(&self, build: &Build) -> Result<f64> {
        let mut edits = build.edits.split("; ").filter(|edit| !edit.is_empty());
        let machine = self.0.get(&build.machine).copied().unwrap_or(0.0);
        edits.try_fold(machine, |sum, edit| match self.0.get(edit) {
            Some(price) => Ok(sum + price),
            None if self.0.is_empty() => Ok(sum + 1.0),
            None => {
                let help = format!("add --price \"{edit} = 0\"");
                Err(Error::request(format!("the edit `{edit}` has no price"), help))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(edits: &str, algorithm: &str, us: f64) -> Row {
        Row {
            case: 0,
            machine: "m".into(),
            edits: edits.into(),
            algorithm: algorithm.into(),
            bytes: Some(1024),
            seed: None,
            us: Some(us),
            in_place_us: None,
            waiting_us: None,
            error: None,
        }
    }

    fn bests() -> Bests {
        let mut bests = Bests::default();
        for (edits, algorithm, us) in [
            ("", "ring", 20.0),
            ("", "pull", 30.0),
            ("a=1", "ring", 10.0),
            ("b=1", "ring", 22.0),
            ("a=1; b=1", "ring", 11.0),
        ] {
            bests.take(&row(edits, algorithm, us));
        }
        bests
    }

    #[test]
    fn the_front_has_no_build_that_another_beats() {
        let prices = Prices::parse(&["a=1 = 100".into(), "b=1 = 5".into()]).expect("tags");
        let front = bests().worth(&prices).expect("priced");
        let told: Vec<(f64, f64)> = front.iter().map(|one| (one.price, one.best.us)).collect();
        assert_eq!(told, [(0.0, 20.0), (100.0, 10.0)]);
        let cheapest = bests().cheapest(1024, 12.0, &prices).expect("rows").expect("met");
        assert_eq!(cheapest.build.edits, "a=1");
        assert_eq!(bests().cheapest(1024, 5.0, &prices).expect("rows"), None);
        assert!(bests().cheapest(7, 5.0, &prices).is_err());
    }

    #[test]
    fn an_edit_without_a_price_is_named() {
        let prices = Prices::parse(&["a=1 = 100".into()]).expect("a tag");
        let error = bests().worth(&prices).expect_err("b=1 has none");
        assert!(error.to_string().contains("`b=1` has no price"), "{error}");
        assert!(Prices::parse(&["a=1 100".into()]).is_err());
        assert!(Prices::parse(&["a=1 = 1".into(), "a=1 = 2".into()]).is_err());
    }

    #[test]
    fn effects_are_those_of_one_edit_alone() {
        let effects = bests().effects();
        assert_eq!(effects[0].edit, "a=1");
        assert_eq!(effects[0].pairs, 2);
        assert!((effects[0].mean + 0.5).abs() < 1e-12);
        assert!((effects[1].mean - 0.1).abs() < 1e-12);
    }
}

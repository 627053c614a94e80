//! A step with each algorithm: what the rest takes, and what the calls take.

use super::Kind;
use super::bars::{Bar, Bars, picture};
use super::picture::Picture;
use super::style::Ink;
use crate::error::Result;
use crate::report::number::short;
use crate::sweep::Study;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "step",
    about: "a step with each algorithm, before and after: everything else, and the calls",
    of_calls: true,
    draw,
};

fn draw(study: &Study<'_>) -> Result<Picture> {
    let answer = study.answer()?;
    let what = study.question.scenario.steps[0].collective.title();
    let told = answer.exchanges.first();
    let rest = told.map_or(0.0, |exchange| exchange.step_ms - exchange.all_reduce_ms);
    let step = &answer.steps[0];
    let ms = |us: f64| us * f64::from(step.step.calls) / 1e3;
    let parts = |calls: f64| if told.is_some() { vec![rest, calls] } else { vec![calls] };
    let floor = ms(step.bound.time.as_us());
    let mut bars = vec![Bar { name: "wires allow".into(), parts: parts(floor), range: None }];
    for row in &answer.rows {
        let time = row[0].time_us;
        bars.push(Bar {
            name: row[0].title.clone(),
            parts: parts(ms(time.value)),
            range: Some((rest + ms(time.low), rest + ms(time.high))),
        });
    }
    let calls = (format!("{} {what}s", step.step.calls), Ink::Series(1));
    let (named, about) = match told {
        Some(exchange) => (
            vec![("everything else".to_owned(), Ink::Series(7)), calls],
            format!(
                "Everything else is {} ms: a reported {} tok/s less the predicted ring. Ranges: 80 %.",
                short(rest),
                exchange.reported_tok_per_s
            ),
        ),
        None => (
            vec![calls],
            "Calls alone; no step was reported of such a machine. Ranges: 80 %.".into(),
        ),
    };
    Ok(picture(&Bars {
        title: format!(
            "A {} step of {}: {}",
            step.step.name,
            study.question.scenario.name,
            super::machine_name(study)
        ),
        summary: about,
        shares: false,
        label: "ms a step",
        parts: named,
        bars,
    }))
}

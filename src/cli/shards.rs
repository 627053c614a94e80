//! Files of a sweep's rows: what their first line says, how far they are, and joining those of all
//! shards.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::files::{cannot, ordinary, part_of};
use super::row_files::{Onward, is_cut, next_line, rename, too_long};
use crate::error::{Error, Result};
use crate::sweep::grid::shard;
use crate::units::format_thousands;

/// Version of the form of plans and rows.
pub(super) const VERSION: u32 = 1;

/// The first line of a file of rows.
pub(super) fn header(name: &str, cases: u64, share: (u64, u64)) -> String {
    let (index, count) = share;
    let value =
        json!({"schema_version": VERSION, "plan": name, "cases": cases, "shard": [index, count]});
    format!("{value}\n")
}

/// First line and number of whole rows of a file.
pub(super) fn read_head(file: &str) -> Result<(String, u64)> {
    ordinary(file)?;
    let told = |error: std::io::Error| cannot("read", file, &error);
    let mut reader = BufReader::new(File::open(file).map_err(told)?);
    let mut line = Vec::new();
    next_line(&mut reader, &mut line).map_err(told)?;
    if is_cut(&line) {
        return Err(no_rows(file, &format!("its first line {}", too_long())));
    }
    let head = String::from_utf8_lossy(&line).into_owned();
    let mut rows = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = reader.read(&mut buffer).map_err(told)?;
        if length == 0 {
            return Ok((head, rows));
        }
        rows += buffer[..length].iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
}

/// Plan, cases and shard of a first line.
pub(super) fn parsed(file: &str, head: &str) -> Result<(String, u64, u64, u64)> {
    let value: Value = serde_json::from_str(head).unwrap_or_default();
    let number = |value: &Value| value.as_u64();
    let found = || {
        let plan = value["plan"].as_str()?.to_owned();
        let shard = &value["shard"];
        Some((plan, number(&value["cases"])?, number(&shard[0])?, number(&shard[1])?))
    };
    let found = found().filter(|found| found.2 < found.3);
    found.ok_or_else(|| {
        no_rows(file, "its first line does not tell a plan, its number of cases and a shard")
    })
}

fn no_rows(file: &str, reason: &str) -> Error {
    let help =
        "name what `simulate sweep run` wrote (rows.jsonl, or rows.jsonl.part before its end)";
    Error::request(format!("{file} is no file of a sweep's rows: {reason}"), help)
}

pub(super) fn status(file: &str) -> Result<String> {
    let part = part_of(file);
    let there = if Path::new(file).exists() { file } else { part.as_str() };
    if !Path::new(there).exists() {
        let message = format!("neither {file} nor {part} is there");
        return Err(Error::request(message, "check the spelling and the directory"));
    }
    let (head, rows) = read_head(there)?;
    let (_, cases, index, count) = parsed(there, &head)?;
    let own = shard(cases, index, count);
    let (all, rows) = (format_thousands(own.end - own.start), format_thousands(rows));
    Ok(format!("{there}: {rows} of {all} cases, shard {index}/{count}\n"))
}

pub(super) fn merge(out: &str, files: &[String]) -> Result<String> {
    ordinary(out)?;
    let mut shards: Vec<(u64, &str)> = Vec::new();
    let mut first: Option<(String, u64, u64)> = None;
    for file in files {
        let (head, rows) = read_head(file)?;
        let (plan, cases, index, count) = parsed(file, &head)?;
        let own = shard(cases, index, count);
        if rows != own.end - own.start {
            return Err(Error::request(
                format!("{file} has {rows} of {} cases", own.end - own.start),
                "run its shard again: it goes on where it was",
            ));
        }
        let same = (plan, cases, count);
        if first.get_or_insert_with(|| same.clone()) != &same {
            let help = "merge the shards of one run";
            return Err(Error::request(
                format!("{file} is of another plan or number of shards"),
                help,
            ));
        }
        shards.push((index, file));
    }
    shards.sort_unstable();
    let Some((plan, cases, count)) = first else {
        return Err(Error::request("there is nothing to merge", "name the files of the shards"));
    };
    let missing = (0..count).find(|&index| shards.get(index as usize).map(|s| s.0) != Some(index));
    if let Some(index) = missing.or((shards.len() as u64 > count).then_some(count)) {
        return Err(Error::request(
            format!("shard {index}/{count} is missing or named twice"),
            "name each shard's file once",
        ));
    }
    let part = part_of(out);
    let mut file = Onward::open(&part)?;
    let joined = || {
        file.write_all(header(&plan, cases, (0, 1)).as_bytes())?;
        for (_, shard) in &shards {
            let mut reader = BufReader::new(File::open(shard)?);
            next_line(&mut reader, &mut Vec::new())?;
            std::io::copy(&mut reader, &mut file)?;
        }
        file.finish()?;
        rename(&part, out)
    };
    joined().map_err(|error| Onward::told(&part, &error))?;
    Ok(format!("{out}: {} cases of {count} shards\n", format_thousands(cases)))
}

/// Refuses a file of rows that is not there yet, and whose run has begun.
pub(super) fn finished(file: &str) -> Result<()> {
    let part = part_of(file);
    if Path::new(file).exists() || !Path::new(&part).exists() {
        return Ok(());
    }
    Err(Error::request(
        format!("{file} is not finished: {}", status(file)?.trim_end()),
        format!("run its sweep to the end, or name {part} for what is there"),
    ))
}

/// Which cases of a sweep are not in a file with this first line and so many rows, in words.
pub(super) fn missing(file: &str, head: &str, rows: u64) -> Result<Option<String>> {
    let (_, cases, index, count) = parsed(file, head)?;
    let shard = if count > 1 { format!(", shard {index}/{count}") } else { String::new() };
    Ok((rows < cases).then(|| {
        let [rows, cases] = [rows, cases].map(format_thousands);
        format!("{file} has {rows} of the sweep's {cases} cases{shard}: the others are not told")
    }))
}

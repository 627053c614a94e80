//! collsim: what a GPU machine's wires do to collective communication.
//!
//! Inputs become a [`topology::Topology`] and a [`workload::Scenario`]; the topology and the
//! calibration are compiled to a [`fabric::Fabric`] of dense arrays; an [`algorithm`] turns a call
//! into a [`schedule::Schedule`] of what each rank's blocks do, and [`selection`] says which one a
//! library would take; the [`engine`] lets time pass over one of three network models; a
//! [`prediction`] is a call's time with its range and bottleneck, a [`sweep`] is many of them, and a
//! [`report`] shows them. [`measurement`] and [`validation`] hold predictions to what real machines
//! did.
//!
//! Layers depend one way only, in the order of the modules below (`tests/it/tidy.rs` holds them to
//! it).

pub mod units;

pub mod error;

pub mod lines;

pub mod suggestion;

pub mod statistics;

pub mod topology;

pub mod workload;

pub mod fabric;

pub mod schedule;

pub mod algorithm;

pub mod selection;

pub mod engine;

pub mod prediction;

pub mod measurement;

pub mod input;

pub mod validation;

pub mod sweep;

pub mod report;

pub mod cli;

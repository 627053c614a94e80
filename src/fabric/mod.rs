//! Topology plus calibration, compiled to dense arrays.

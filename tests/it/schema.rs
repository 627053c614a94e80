//! Is the JSON Schema in the tree the one of the code? `COLLSIM_BLESS=1` rewrites it.

use collsim::input::topology_json::schema;

#[test]
#[allow(clippy::disallowed_methods)]
fn the_schema_file_is_that_of_the_code() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/topologies/topology.schema.json");
    if std::env::var("COLLSIM_BLESS").is_ok() {
        std::fs::write(file, schema()).expect("writable");
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        kept == schema(),
        "topologies/topology.schema.json is out of date: run the tests with COLLSIM_BLESS=1"
    );
}

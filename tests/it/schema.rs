//! Are the JSON Schemas in the tree those of the code? `COLLSIM_BLESS=1` rewrites them.

use crate::bless::same_as_file;

#[test]
fn the_schema_of_topologies_is_that_of_the_code() {
    same_as_file("topologies/topology.schema.json", &collsim::input::topology_json::schema());
}

#[test]
fn the_schema_of_scenarios_is_that_of_the_code() {
    same_as_file("scenarios/scenario.schema.json", &collsim::input::scenario_json::schema());
}

#[test]
fn the_schema_of_questions_is_that_of_the_code() {
    let file = "scenarios/questions/question.schema.json";
    same_as_file(file, &collsim::sweep::ask::schema());
}

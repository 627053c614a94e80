//! Does the catalogue of models agree with itself, and say what no source at hand states?

use collsim::workload::model::catalogue;

#[test]
fn the_catalogue_agrees_with_itself() {
    let known = ["heads", "vocabulary", "dense_layers", "draft_tokens"];
    for model in catalogue().expect("readable") {
        let name = &model.name;
        let pairs = model.layer_reduces == 2 * model.layers;
        assert!(pairs || model.layer_reduces == model.layers, "{name}");
        assert!(model.fp32_reduces <= model.layer_reduces, "{name}");
        assert_eq!((model.hidden % 64, model.heads.unwrap_or(8) % 8), (0, 0), "{name}");
        if let Some(experts) = &model.experts {
            let used = experts.used.unwrap_or(0);
            assert!(used < experts.count && experts.dense_layers < model.layers, "{name}");
        }
        for field in &model.recalled {
            assert!(known.contains(&field.as_str()), "{name}: {field}");
        }
        let has = |field: &str| model.recalled.iter().any(|one| one == field);
        assert_eq!(model.heads.is_some(), has("heads"), "{name}");
        assert_eq!(model.vocabulary.is_some(), has("vocabulary"), "{name}");
    }
}

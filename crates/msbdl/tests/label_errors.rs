//! Refuses labels and settings of learning with them that cannot be, in one line each.

mod common;

use common::{matrix, rng};
use msbdl::{
    Config, Data, Error, Labels, PerModality, Silent, TaskConfig, Validation, fit, fit_task,
};
use ndarray::Array2;

fn views() -> Vec<(String, Array2<f64>)> {
    let mut rng = rng(1);
    [("clear", 6), ("noisy", 5)].map(|(name, n)| (name.into(), matrix(&mut rng, 6, n))).into()
}

fn quick() -> Config {
    Config { max_iter: Some(2), ..Config::new(2) }
}

fn some<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    values.iter().map(|x| Some(*x)).collect()
}

fn problem(labels: Result<Labels, Error>, task: &TaskConfig) -> String {
    let data = Data::new(views(), true).unwrap();
    let fitted = labels.and_then(|labels| fit_task(&data, &labels, task, &quick(), &mut Silent));
    let text = fitted.unwrap_err().to_string();
    assert_eq!(text.lines().count(), 1);
    text
}

#[test]
fn labels_that_cannot_be() {
    let six = || Labels::classes(&some(&["b", "a", "b", "a", "b", "a"]));
    let plain = TaskConfig::default();
    let with = |change: fn(&mut TaskConfig)| {
        let mut task = TaskConfig::default();
        change(&mut task);
        task
    };
    let tags = |x: f64| Labels::tags(None, Array2::from_elem((6, 2), x));
    let none: [Option<&str>; 6] = [None; 6];
    let cases = [
        (problem(Labels::classes(&some(&[1, 2, 1])), &plain), "there are 3 labels for 6 samples"),
        (
            problem(Labels::classes(&[Some(3); 6]), &plain),
            "every label is '3': there is nothing to tell apart",
        ),
        (problem(Labels::classes(&none), &plain), "no sample has a label"),
        (
            problem(Labels::classes(&some(&[1, 1, 1, 1, 1, 2])), &plain),
            "class '2' has a single sample, which cannot be both learnt from and set aside for \
             validation; leave the class out or validate on no sample",
        ),
        (problem(tags(0.5), &plain), "tags, row 0, column 0: the value is 0.5 instead of 0 or 1"),
        (problem(tags(0.0), &plain), "no sample that is learnt from has the label '0'"),
        (
            problem(Labels::tags(Some(vec!["a".into()]), Array2::zeros((6, 2))), &plain),
            "there are 1 names for 2 tags",
        ),
        (
            problem(Labels::among(vec!["a".into()], &vec![Some("b".to_owned()); 6]), &plain),
            "label 0: 'b' is not one of the labels a",
        ),
        (
            problem(six(), &with(|t| t.validation = Validation::Share(1.0))),
            "validation must be at least 0 and below 1, not 1",
        ),
        (
            problem(six(), &with(|t| t.validation = Validation::Rows(vec![6]))),
            "validation-rows must be below the number of samples, 6, not 6",
        ),
        (
            problem(
                Labels::classes(&[Some("a"), Some("b"), None, None, Some("a"), Some("b")]),
                &with(|t| t.validation = Validation::Rows(vec![2])),
            ),
            "validation-rows must be rows with a label, not 2",
        ),
        (
            problem(six(), &with(|t| t.validation = Validation::Rows(vec![0, 2, 4]))),
            "no sample that is learnt from has the label 'b'",
        ),
        (
            problem(six(), &with(|t| t.alpha_beta = Some(1.0))),
            "alpha-beta must be between 0 and 1, not 1",
        ),
        (problem(six(), &with(|t| t.nu = Some(-1.0))), "nu must be positive, not -1"),
        (
            problem(six(), &with(|t| t.beta0 = Some(PerModality::Same(0.0)))),
            "beta0 must be positive, not 0",
        ),
        (
            problem(six(), &with(|t| t.beta0 = Some(PerModality::ByName(vec![("x".into(), 1.0)])))),
            "beta0: unknown modality 'x'; the modalities are clear, noisy",
        ),
        (
            problem(six(), &with(|t| t.validate_every = Some(0))),
            "validate-every must be at least 1, not 0",
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let without = fit(&Data::new(views(), true).unwrap(), &quick(), &mut Silent).unwrap();
    assert_eq!(
        without.predict(views()).unwrap_err().to_string(),
        "the model has no classifier: it was learnt without labels"
    );
}

#[test]
fn classes_are_in_order() {
    let names = |given: &[&str]| Labels::classes(&some(given)).unwrap().names().to_vec();
    assert_eq!(names(&["10", "9", "-1", "9"]), ["-1", "9", "10"]);
    assert_eq!(names(&["10", "9", "x"]), ["10", "9", "x"]);
}

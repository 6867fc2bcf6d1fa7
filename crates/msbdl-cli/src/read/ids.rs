//! Matches the samples of several modalities by id.

use std::collections::HashMap;

use ndarray::Array2;

use super::{BadInput, Table, quoted};

/// Modalities over the same samples; a sample that one lacks is a row of NaN there.
#[derive(Debug)]
pub struct Matched {
    pub ids: Vec<String>,
    pub tables: Vec<(String, Array2<f64>)>,
}

/// Brings named tables with ids to the union of their samples, in order of first appearance.
pub fn matched(tables: Vec<(String, Table)>) -> anyhow::Result<Matched> {
    let mut ids = Vec::new();
    let mut holders = Vec::new();
    let mut places = HashMap::new();
    let mut rows_of = Vec::with_capacity(tables.len());
    for (name, table) in &tables {
        let Some(names) = &table.ids else {
            return Err(BadInput::new(name, "has no sample ids to match by").into());
        };
        let mut rows = Vec::with_capacity(names.len());
        for id in names {
            let row = *places.entry(id.as_str()).or_insert(ids.len());
            if row == ids.len() {
                ids.push(id.clone());
                holders.push(0_usize);
            }
            holders[row] += 1;
            rows.push(row);
        }
        rows_of.push(rows);
    }
    for ((name, _), rows) in tables.iter().zip(&rows_of) {
        if tables.len() > 1 && rows.iter().all(|&row| holders[row] == 1) {
            return Err(BadInput::new(name, &shares_none(&tables)).into());
        }
    }

    let count = ids.len();
    let mut spread = Vec::with_capacity(tables.len());
    for ((name, table), rows) in tables.into_iter().zip(rows_of) {
        let mut values = Array2::from_elem((count, table.values.ncols()), f64::NAN);
        for (source, &row) in table.values.rows().into_iter().zip(&rows) {
            values.row_mut(row).assign(&source);
        }
        spread.push((name, values));
    }
    Ok(Matched { ids, tables: spread })
}

fn shares_none(tables: &[(String, Table)]) -> String {
    let examples: Vec<_> = tables
        .iter()
        .filter_map(|(name, table)| {
            let id = table.ids.as_ref()?.first()?;
            Some(format!("{} in {name}", quoted(id)))
        })
        .collect();
    format!(
        "none of its sample ids occurs in another modality (for example {})",
        examples.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn named(name: &str, ids: &[&str], values: Array2<f64>) -> (String, Table) {
        let ids = Some(ids.iter().map(|&id| id.to_owned()).collect());
        let table = Table { values, ids, columns: None };
        (name.to_owned(), table)
    }

    #[test]
    fn samples_are_the_union_in_order_of_first_appearance() {
        let result = matched(vec![
            named("x", &["b", "a"], array![[1.0, 2.0], [3.0, 4.0]]),
            named("y", &["c", "a"], array![[5.0], [6.0]]),
        ])
        .unwrap();
        assert_eq!(result.ids, ["b", "a", "c"]);
        let [(x, x_values), (y, y_values)] = &result.tables[..] else {
            panic!("two tables went in");
        };
        assert_eq!((x.as_str(), y.as_str()), ("x", "y"));
        // NaN equals nothing, so it is shown as a number that occurs nowhere else.
        let shown = |values: &Array2<f64>| values.mapv(|v| if v.is_nan() { -1.0 } else { v });
        assert_eq!(shown(x_values), array![[1.0, 2.0], [3.0, 4.0], [-1.0, -1.0]]);
        assert_eq!(shown(y_values), array![[-1.0], [6.0], [5.0]]);
    }

    #[test]
    fn a_single_modality_needs_no_partner() {
        let result = matched(vec![named("x", &["a"], array![[1.0]])]).unwrap();
        assert_eq!(result.ids, ["a"]);
    }

    #[test]
    fn a_modality_that_shares_no_id_is_refused() {
        let error = matched(vec![
            named("x", &["a", "b"], array![[1.0], [2.0]]),
            named("y", &["b"], array![[3.0]]),
            named("z", &["A", "B"], array![[4.0], [5.0]]),
        ])
        .unwrap_err();
        assert_eq!(
            error.downcast_ref::<BadInput>().unwrap().to_string(),
            "z: none of its sample ids occurs in another modality \
             (for example \"a\" in x, \"b\" in y, \"A\" in z)"
        );
    }

    #[test]
    fn modalities_in_a_chain_are_matched() {
        let result = matched(vec![
            named("x", &["a", "b"], array![[1.0], [2.0]]),
            named("y", &["b", "c"], array![[3.0], [4.0]]),
            named("z", &["c"], array![[5.0]]),
        ])
        .unwrap();
        assert_eq!(result.ids, ["a", "b", "c"]);
    }

    #[test]
    fn a_table_without_ids_is_refused() {
        let (name, mut table) = named("x", &["a"], array![[1.0]]);
        table.ids = None;
        let error = matched(vec![(name, table)]).unwrap_err();
        assert_eq!(error.to_string(), "x: has no sample ids to match by");
    }
}

//! Fits variances that never rise from an atom to what hangs under it: isotonic regression.

/// The v with v[i] <= v[parent[i]] that maximises sum -w (log v + q / v).
///
/// Parents come before children. From the leaves up, the highest block below a node is merged
/// with it for as long as it is higher: blocks have the weighted mean of their q, and the
/// optimum of such a criterion on a tree is reached by merging neighbours out of order.
pub(crate) fn pool(parent: &[Option<usize>], q: &[f64], w: &[f64]) -> Vec<f64> {
    let n = parent.len();
    let mut sum: Vec<f64> = q.iter().zip(w).map(|(q, w)| q * w).collect();
    let mut weight = w.to_vec();
    // Blocks that hang under the block whose first node this is.
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut merged_into: Vec<usize> = (0..n).collect();
    let value = |sum: &[f64], weight: &[f64], i: usize| sum[i] / weight[i];
    for i in (0..n).rev() {
        loop {
            let highest = (0..below[i].len()).max_by(|&a, &b| {
                let [a, b] = [a, b].map(|x| value(&sum, &weight, below[i][x]));
                a.total_cmp(&b)
            });
            let Some(place) = highest else { break };
            let child = below[i][place];
            if value(&sum, &weight, child) <= value(&sum, &weight, i) {
                break;
            }
            below[i].swap_remove(place);
            sum[i] += sum[child];
            weight[i] += weight[child];
            merged_into[child] = i;
            let grandchildren = std::mem::take(&mut below[child]);
            below[i].extend(grandchildren);
        }
        if let Some(parent) = parent[i] {
            below[parent].push(i);
        }
    }
    // A block's first node comes before its others.
    let mut v = vec![0.0; n];
    for i in 0..n {
        v[i] = match merged_into[i] {
            first if first == i => value(&sum, &weight, i),
            first => v[first],
        };
    }
    v
}

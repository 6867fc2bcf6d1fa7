//! Approximates posteriors: the mean by conjugate gradients, the covariance by its diagonal.

use super::lanes::Lanes;
use super::{Answer, Task};

/// Residual, relative to y, at which the conjugate gradients stop.
const TOLERANCE: f64 = 1e-8;

/// Answers `task` for the samples in `rows`, `V::W` at a time.
///
/// # Safety
/// The processor has the instruction set of `V`.
#[inline(always)]
pub(super) unsafe fn run<V: Lanes>(task: &Task, rows: &[usize], out: &mut Answer) {
    let (n, m, s) = (task.n(), task.m(), task.s);
    let norms: Vec<f64> = (0..m).map(|k| task.d.column(k).dot(&task.d.column(k))).collect();
    let mut v = vec![0.0; m * V::W];
    let mut y = vec![0.0; n * V::W];
    for group in rows.chunks(V::W) {
        v.fill(0.0);
        y.fill(0.0);
        for (lane, &row) in group.iter().enumerate() {
            task.v_row(row).iter().enumerate().for_each(|(k, &x)| v[k * V::W + lane] = x);
            task.y_row(row).iter().enumerate().for_each(|(p, &x)| y[p * V::W + lane] = x);
        }
        // SAFETY: v and y hold m and n registers.
        let u = unsafe { solve::<V>(task, &v, &y) };
        for (lane, &row) in group.iter().enumerate() {
            let u = || u[lane..].iter().step_by(V::W);
            out.quad[row] = task.y_row(row).iter().zip(u()).map(|(y, u)| y * u).sum();
            out.log_det[row] = n as f64 * s.ln();
            for (k, &v) in task.v_row(row).iter().enumerate() {
                let t: f64 = task.d.column(k).iter().zip(u()).map(|(d, u)| d * u).sum();
                // Sigma = 1 / (|d|^2/s + 1/v) = v - v^2 b
                out.t[row * m + k] = t;
                out.b[row * m + k] = norms[k] / (s + v * norms[k]);
                out.log_det[row] += (v * norms[k] / s).ln_1p();
                if !out.cov.is_empty() {
                    out.cov[k * m + k] += v * s / (s + v * norms[k]);
                }
            }
        }
    }
}

/// u = (s I + D V D^T)^-1 y, each lane on its own.
#[inline(always)]
unsafe fn solve<V: Lanes>(task: &Task, v: &[f64], y: &[f64]) -> Vec<f64> {
    let w = V::W;
    let mut u = vec![0.0; y.len()];
    let (mut r, mut p, mut q) = (y.to_vec(), y.to_vec(), vec![0.0; y.len()]);
    let dots = |a: &[f64], b: &[f64]| {
        let mut sum = [0.0; 16];
        for (a, b) in a.chunks_exact(w).zip(b.chunks_exact(w)) {
            (0..w).for_each(|lane| sum[lane] += a[lane] * b[lane]);
        }
        sum
    };
    let mut rr = dots(&r, &r);
    let goal = rr.map(|x| x * TOLERANCE * TOLERANCE);
    // Exact arithmetic needs at most N steps; rounding a few more.
    for _ in 0..2 * task.n() + 10 {
        if (0..w).all(|lane| rr[lane] <= goal[lane]) {
            break;
        }
        // SAFETY: p and q hold n registers, v holds m.
        unsafe { apply_s::<V>(task, v, &p, &mut q) };
        let pq = dots(&p, &q);
        let step: [f64; 16] =
            std::array::from_fn(|i| if rr[i] > goal[i] { rr[i] / pq[i] } else { 0.0 });
        for i in 0..u.len() {
            u[i] += step[i % w] * p[i];
            r[i] -= step[i % w] * q[i];
        }
        let next = dots(&r, &r);
        for i in 0..u.len() {
            let lane = i % w;
            if rr[lane] > goal[lane] {
                p[i] = r[i] + next[lane] / rr[lane] * p[i];
            }
        }
        rr = next;
    }
    u
}

/// q = s p + D V D^T p
#[inline(always)]
unsafe fn apply_s<V: Lanes>(task: &Task, v: &[f64], p: &[f64], q: &mut [f64]) {
    // SAFETY: all offsets are below n * W or m * W.
    unsafe {
        let s = V::splat(task.s);
        for i in 0..task.n() {
            V::load(p.as_ptr().add(i * V::W)).mul(s).store(q.as_mut_ptr().add(i * V::W));
        }
        for k in 0..task.m() {
            let column = task.d.column(k);
            let mut z = V::splat(0.0);
            for (i, &d) in column.iter().enumerate() {
                z = z.fma(V::splat(d), V::load(p.as_ptr().add(i * V::W)));
            }
            let z = z.mul(V::load(v.as_ptr().add(k * V::W)));
            for (i, &d) in column.iter().enumerate() {
                let here = q.as_mut_ptr().add(i * V::W);
                V::load(here).fma(V::splat(d), z).store(here);
            }
        }
    }
}
